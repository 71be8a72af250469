"""Phases that end when a measurement says so, one role after the other."""

from __future__ import annotations

import pytest

from sb3_ext.config.sections import ConfigError
from sb3_ext.two_player import HostAgentTrainer, read_config
from sb3_ext.two_player.config import smoke_version
from sb3_ext.two_player.phases import Phases
from tests.sb3_ext.ddqn.helpers import same, weights
from tests.sb3_ext.two_player.helpers import HostNet, tiny, trainer

NEVER = "{condition: bound, field: rho/host-agent, lower: 9}"
ALWAYS = "{condition: bound, field: rho/score, lower: -9}"


def updates(until, **more):
    words = {"first": "agent", "phases": 4, "max_steps": 3, "until": until, **more}
    told = ", ".join(f"{key}: {value}" for key, value in words.items())
    return f"training.updates={{mode: alternating, {told}}}"


def whose_steps(phases, values):
    """Plays so many steps as there are values, each measured after it; who was due in each."""
    due = []
    for step, value in enumerate(values):
        due.append("".join(role for role in "ab" if phases.is_due(role, step)))
        phases.observe({"rho/a-b": value})
        phases.advance(step + 1)
    return due


def test_a_phase_ends_by_its_condition_or_after_its_steps():
    plateau = {"condition": "converged", "field": "rho/a-b", "window": 2, "tolerance": 0.01}
    phases = Phases("b", 4, 4, plateau)
    assert phases.steps_left(0) == 16
    # b: flat at once. a: starts to count anew, never flat, 4 steps. b: flat after three. a: two.
    values = [0.5, 0.5, 0.9, 0.1, 0.9, 0.1, 0.2, 0.4, 0.4, 0.4, 0.4]
    assert whose_steps(phases, values) == [*"bb", *"aaaa", *"bbb", *"aa"]
    assert (phases.number, phases.steps_left(11)) == (4, 0)
    assert not any(phases.is_due(role, 11) for role in "ab")


def test_all_conditions_have_to_hold():
    high = {"condition": "bound", "field": "rho/a-b", "lower": 0.5}
    flat = {"condition": "converged", "field": "rho/a-b", "window": 2, "tolerance": 0.1}
    assert whose_steps(Phases("a", 2, 9, [high, flat]), [0.1, 0.1, 0.9, 0.9, 0.9]) == [*"aaaab"]
    assert whose_steps(Phases("a", 2, 2), [0.1, 0.1, 0.1, 0.1, 0.1]) == [*"aabb", ""]


@pytest.mark.parametrize(
    ("until", "counts", "steps"),
    [(NEVER, {"agent": 6, "host": 6}, 12), (ALWAYS, {"agent": 4, "host": 4}, 8)],
)
def test_training_ends_with_the_last_phase(until, counts, steps):
    players = trainer(updates(until), "evaluation.every_steps=2")
    players.train(100)
    assert players.total_steps == steps
    assert {role: learner.updates for role, learner in players.roles.items()} == counts
    assert {each.step for each in players.history} >= set(range(0, steps + 1, steps // 4)) - {0}
    assert players.train(5).step == steps


def test_who_is_not_in_turn_stays_as_it_is_and_plays_as_it_is():
    players = trainer(updates(NEVER))
    host = weights(players.roles["host"])
    players.train(3)
    assert same(host, weights(players.roles["host"]))
    agent = weights(players.roles["agent"])
    players.train(2)
    assert same(agent, weights(players.roles["agent"]))
    assert not same(host, weights(players.roles["host"]))


def test_the_first_rollouts_of_a_role_meet_the_one_that_has_learnt():
    players = trainer(updates(NEVER))
    players.train(2)
    assert not players.roles["host"].has_experience
    players.train(1)
    assert players.roles["host"].has_experience
    assert players.roles["host"].updates == 0


def test_a_fresh_role_begins_its_phase_as_a_new_one():
    schedule = "roles.agent.learning_rate={schedule: linear, init: 0.01, final: 0.0, steps: 4}"
    players = trainer(updates(NEVER, fresh="true"), schedule)
    agent, host = players.roles["agent"], players.roles["host"]
    first = weights(agent)
    players.train(6)  # a phase of each; the agent's second begins
    assert agent.updates == 0
    assert agent.transitions == 8 * 3  # its first rollouts alone, against the host of now
    assert host.updates == 3
    assert not agent.policy.optimizer.state_dict()["state"]
    assert not same(first, weights(agent))
    assert host.seated[0] == [players.players["agent"]]
    again = trainer(updates(NEVER, fresh="true"), schedule)
    again.train(6)
    assert same(weights(agent), weights(again.roles["agent"]))
    players.train(1)
    assert agent.metrics()["learning_rate"] == pytest.approx(0.01)


def test_a_network_that_was_put_in_cannot_be_made_anew():
    players = trainer(updates(NEVER, fresh="true", first="host"), nets={"host": HostNet()})
    with pytest.raises(ValueError, match="host has a network that was put in"):
        players.train(7)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (updates(NEVER, first="hosts"), "unknown role 'hosts'; did you mean 'host'?"),
        (updates(NEVER, phases=0), "phases must be a whole number of at least 1, got 0"),
        (updates(NEVER, max_steps="many"), "max_steps must be a whole number"),
        (updates("{condition: convergd, field: x}"), "did you mean 'converged'?"),
        (updates("rho"), "until: must be a mapping with the key condition"),
        (updates(NEVER, frseh="true"), "unknown key 'frseh'; did you mean 'fresh'?"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(setting, expected):
    with pytest.raises(ConfigError) as caught:
        read_config(tiny(setting))
    assert expected in str(caught.value)
    assert "training.updates" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_condition_on_what_is_not_measured_is_refused():
    with pytest.raises(ConfigError, match="until: unknown field 'rho/host-agnt'; did you mean"):
        trainer(updates("{condition: bound, field: rho/host-agnt, lower: 1}"))


def test_both_roles_have_to_learn():
    with pytest.raises(ConfigError, match="alternating needs both roles"):
        read_config(tiny(updates(NEVER), "training.players=[host]", agent={"player": "random"}))


def test_the_shipped_configuration_alternates_in_a_smoke_run():
    players = HostAgentTrainer(smoke_version(read_config("alternating")))
    players.train()
    assert {role: learner.updates for role, learner in players.roles.items()} == {
        "host": 2,
        "agent": 2,
    }
