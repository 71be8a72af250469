"""Which role is updated when, and phases that end when a measurement says so."""

from __future__ import annotations

import pytest

from sb3_ext.config.sections import ConfigError
from sb3_ext.two_player import HostAgentTrainer, read_config
from sb3_ext.two_player.config import smoke_version
from sb3_ext.two_player.turns import Alternating, Turns, Windows
from tests.sb3_ext.ddqn.helpers import same, weights
from tests.sb3_ext.two_player.helpers import HostNet, tiny, trainer

NEVER = "{condition: bound, field: rho/host-agent, lower: 9}"
ALWAYS = "{condition: bound, field: rho/score, lower: -9}"
WINDOW = "[1, 2]"


def updates(until, **more):
    words = {"first": "agent", "phases": 4, "max_steps": 3, "until": until, **more}
    told = ", ".join(f"{key}: {value}" for key, value in words.items())
    return f"training.updates={{mode: alternating, {told}}}"


@pytest.mark.parametrize(
    ("turns", "a", "b"),
    [
        (Turns(), "01234567", "01234567"),
        (Windows(4, {"a": [1, 3], "b": [0, 4.0]}), "1256", "01234567"),
        (Windows(4.0, {"a": [0, 3], "b": [3, 4]}), "012456", "37"),
    ],
)
def test_steps_in_which_a_role_is_due(turns, a, b):
    for role, due in (("a", a), ("b", b)):
        assert "".join(str(step) for step in range(8) if turns.is_due(role, step)) == due


def test_team_change_of_self_play_is_a_window_of_each_role():
    turns = read_config(tiny("self_play.team_change=3", name="self_play")).turns()
    assert (turns.period, turns.windows) == (6, {"host": (0, 3), "agent": (3, 6)})


@pytest.mark.parametrize(
    ("form", "host", "agent"),
    [
        ("{mode: windows, period: 5, windows: {agent: [0, 3], host: [3, 5]}}",
         "0001222", "1233345"),
        (f"{{mode: windows, period: 3, windows: {{host: {WINDOW}, agent: {WINDOW}}}}}",
         "0111222", "0111222"),
    ],
)  # fmt: skip
def test_roles_are_updated_when_they_are_due_and_a_step_may_stay_empty(form, host, agent):
    seen = []

    def note(each):
        seen.append(tuple(str(learner.updates) for learner in each.roles.values()))

    trainer(f"training.updates={form}").train(7, callback=note)
    assert seen == list(zip(host, agent, strict=True))


def whose_steps(turns, values):
    """Plays so many steps as there are values, each measured after it; who was due in each."""
    due = []
    for step, value in enumerate(values):
        due.append("".join(role for role in "ab" if turns.is_due(role, step)))
        turns.observe({"rho/a-b": value})
        turns.advance(step + 1)
    return due


def test_a_phase_ends_by_its_conditions_or_after_its_steps():
    plateau = {"condition": "converged", "field": "rho/a-b", "window": 2, "tolerance": 0.01}
    turns = Alternating("b", 4, 4, plateau)
    assert turns.last_step(99) == 16
    # b: flat at once. a: starts to count anew, never flat, 4 steps. b: flat after three. a: two.
    values = [0.5, 0.5, 0.9, 0.1, 0.9, 0.1, 0.2, 0.4, 0.4, 0.4, 0.4]
    assert whose_steps(turns, values) == [*"bb", *"aaaa", *"bbb", *"aa"]
    assert (turns.number, turns.last_step(99)) == (4, 11)
    assert not any(turns.is_due(role, 11) for role in "ab")
    high = {"condition": "bound", "field": "rho/a-b", "lower": 0.5}
    flat = {"condition": "converged", "field": "rho/a-b", "window": 2, "tolerance": 0.1}
    all_hold = Alternating("a", 2, 9, [high, flat])
    assert whose_steps(all_hold, [0.1, 0.1, 0.9, 0.9, 0.9]) == [*"aaaab"]
    assert whose_steps(Alternating("a", 2, 2), [0.1] * 5) == [*"aabb", ""]


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


def test_who_is_not_in_turn_waits_and_then_meets_the_one_that_has_learnt():
    players = trainer(updates(NEVER))
    host = weights(players.roles["host"])
    players.train(2)
    assert not players.roles["host"].has_experience
    players.train(1)
    assert players.roles["host"].has_experience
    assert same(host, weights(players.roles["host"]))
    agent = weights(players.roles["agent"])
    players.train(2)
    assert same(agent, weights(players.roles["agent"]))
    assert not same(host, weights(players.roles["host"]))


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


def windows(text):
    return f"training.updates={{mode: windows, {text}}}"


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("training.updates={}", "must be a mapping with the key mode"),
        ("training.updates=interleaved", "must be a mapping"),
        ("training.updates={mode: interleaved, period: 2}", "unknown key 'period'"),
        ("training.updates={mode: turns}", "unknown mode 'turns'; choices: alternating, inter"),
        (windows("period: 4"), "missing a required argument: 'windows'"),
        (windows("period: 0, windows: {}"), "period must be a whole number of at least 1"),
        (windows("period: 4, windows: {host: [0, 1]}"), "windows: got ['host']; expected all"),
        (windows("period: 4, windows: {hosts: [0, 1], agent: [0, 1]}"), "mean 'host'"),
        *(
            (windows(f"period: 4, windows: {{host: {bad}, agent: [0, 1]}}"), "training.updates")
            for bad in ("[3, 3]", "[0, 5]", "[-1, 2]", "[0.5, 2]", "3", "[1]", "[a, b]")
        ),
        (windows("period: 4, windows: [1]"), "training.updates"),
        (updates(NEVER, first="hosts"), "unknown role 'hosts'; did you mean 'host'?"),
        (updates(NEVER, phases=0), "phases must be a whole number of at least 1, got 0"),
        (updates("{condition: convergd, field: x}"), "did you mean 'converged'?"),
        (updates("rho"), "until: must be a mapping with the key condition"),
        (updates("{condition: bound, field: rho/host-agnt, lower: 1}"), "unknown field"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(setting, expected):
    with pytest.raises(ConfigError) as caught:
        HostAgentTrainer(tiny(setting))
    assert expected in str(caught.value)
    assert "training.updates" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_both_roles_have_to_learn():
    with pytest.raises(ConfigError, match="alternating needs both roles"):
        read_config(tiny(updates(NEVER), "training.players=[host]", agent={"player": "random"}))


def test_the_shipped_configuration_alternates_in_a_smoke_run():
    players = HostAgentTrainer(smoke_version(read_config("alternating")))
    players.train()
    assert {role: each.updates for role, each in players.roles.items()} == {"host": 2, "agent": 2}
