"""The order of operations in a step, its rhythms, phases and frozen roles."""

from functools import partial

import pytest
import torch

from sb3_ext.two_player import HostAgentTrainer
from tests.sb3_ext.helpers import equal, weights
from tests.sb3_ext.two_player.helpers import HostNet, tiny, trainer


def test_order_of_operations_is_that_of_the_original(monkeypatch):
    """Target (before the first fit too), fit, rollout: role by role, then rho."""
    players = trainer(
        "roles.host.target_update.every_updates=2",
        "roles.agent.target_update.every_updates=3",
        "roles.host.rollout.every_updates=3",
        "roles.agent.rollout.every_updates=2",
    )
    calls = []

    def record(owner, method, label):
        original = getattr(owner, method)
        monkeypatch.setattr(owner, method, lambda *a, **k: calls.append(label) or original(*a, **k))

    record(players, "evaluate_rho", "evaluate")
    for role, learner in players.roles.items():
        for operation in ("update_target", "gradient_step", "collect"):
            record(learner, operation, f"{role} {operation}")
    players.train(4, evaluation_interval=3)

    assert calls == [
        "host collect",  # the first experience
        "agent collect",
        *("host update_target", "host gradient_step", "host collect"),
        *("agent update_target", "agent gradient_step", "agent collect"),
        *("host gradient_step", "agent gradient_step"),
        *("host update_target", "host gradient_step"),
        *("agent gradient_step", "agent collect"),
        "evaluate",
        *("host gradient_step", "host collect"),
        *("agent update_target", "agent gradient_step"),
        "evaluate",  # at the end
    ]


def test_b5_b6_schedules_advance_at_every_update_beside_a_role_without_one():
    rate = "{schedule: exponential, init: 1.0e-3, final: 0.0, rate: 0.5}"
    players = trainer(f"roles.agent.learning_rate={rate}", f"roles.agent.exploration_rate={rate}")
    players.train(4)
    host, agent = (each.policy.optimizer.param_groups[0]["lr"] for each in players.roles.values())
    assert (host, agent) == pytest.approx((1e-3, 1.25e-4))
    assert players.roles["agent"].model.exploration_rate < 1e-3


def test_b13_rollouts_are_played_in_evaluation_mode_the_first_ones_too():
    players = trainer(
        "roles.host.net_arch=[16, b]",
        "roles.agent.net_arch=[16, b]",
        "roles.host.rollout.rollout_size=1",  # BatchNorm in training mode refuses a single row
        "roles.host.rollout.initial_rollout_size=1",
    )
    host = players.roles["host"]
    before = host.policy.q_net.q_net[0][1].running_mean.clone()
    players.collect_rollout("host")
    players.count_actions("agent")
    players.evaluate_rho()
    assert torch.equal(before, host.policy.q_net.q_net[0][1].running_mean)
    players.train(1)
    assert not torch.equal(before, host.policy.q_net.q_net[0][1].running_mean)


def test_b22_there_is_a_measurement_at_the_end_also_of_short_calls():
    players = trainer()
    assert players.train(2, evaluation_interval=1000).step == 2
    assert [each.step for each in players.history] == [2]
    # A callback stops it at 4, where it is measured once.
    players.train(9, evaluation_interval=4, callback=lambda each: each.total_steps < 4)
    assert [each.step for each in players.history] == [2, 4]


def test_a_frozen_role_does_not_move_but_plays(tmp_path):
    players = trainer()
    players.train(2)
    players.freeze("agent")
    players = HostAgentTrainer.load(players.save(tmp_path / "frozen"))
    before = weights(players.roles["agent"])
    players.train(4)
    assert equal(before, weights(players.roles["agent"]))
    assert players.roles["host"].updates == 6
    players.unfreeze("agent")
    players.train(1)
    assert players.roles["agent"].updates == 3


def test_roles_that_cannot_be_trained_are_refused():
    two = trainer()
    two.freeze("agent")
    for refused, told in (
        (partial(two.train, 1, players=["guest"]), "guest"),
        (partial(two.train, 1, players=["agent"]), "not frozen"),
        (partial(two.train, 1, players=[]), "not frozen"),
        (partial(two.train, 1, evaluation_interval=0), "evaluation_interval"),
        (partial(two.collect_rollout, "host", -1), "games"),
        (partial(two.begin_anew, "guest", 0), "guest"),
        (partial(HostAgentTrainer, two.config, callbacks={"guest": []}), "guest"),
    ):
        with pytest.raises(ValueError, match=told):
            refused()
    assert two.total_steps == 0


@pytest.mark.parametrize(
    ("windows", "host", "agent"),
    [
        ("period: 5, agent: [0, 3], host: [3, 5]", "0001222", "1233345"),
        ("period: 3, host: [1, 2], agent: [1, 2]", "0111222", "0111222"),
        ("self_play.team_change=3", "1233334", "0001233"),
    ],
)
def test_roles_are_updated_in_their_windows_and_a_step_may_stay_empty(windows, host, agent):
    seen = []

    def note(each):
        seen.append(tuple(str(learner.updates) for learner in each.roles.values()))

    setting = f"training.updates={{{windows}}}" if ":" in windows else windows
    HostAgentTrainer(tiny(setting, name="self_play")).train(7, callback=note)
    assert seen == list(zip(host, agent, strict=True))


def test_a_fresh_role_begins_its_windows_as_a_new_one():
    rate = "roles.agent.learning_rate={schedule: linear, init: 0.01, final: 0.0, steps: 4}"
    turns = "training.updates={period: 6, agent: [0, 3], host: [3, 6], fresh: true}"
    players = trainer(turns, rate)
    again = trainer(turns, rate)
    agent = players.roles["agent"]
    host = players.roles["host"]
    first = weights(agent)
    for each in (players, again):
        each.train(6)  # a window of each role
        each.begin_windows(["host", "agent"])
    assert (agent.updates, host.updates) == (0, 3)  # the agent begins
    assert agent.transitions == 8 * 3  # its first rollouts alone, against the host of now
    assert not agent.policy.optimizer.state_dict()["state"]
    assert not equal(first, weights(agent))
    assert equal(weights(agent), weights(again.roles["agent"]))
    players.step(["agent"])
    assert agent.metrics()["learning_rate"] == pytest.approx(0.01)
    players.replace_nets(host=HostNet())
    with pytest.raises(ValueError, match="host has a network that was put in"):
        players.begin_anew("host", 0)


@pytest.mark.parametrize("reset", ["true", "false"])
def test_rollouts_are_fresh_games_or_go_on(reset):
    """The original starts new games in every rollout and cuts them without a done flag."""
    settings = {"max_rollout_steps": 1, "reset_each_rollout": reset, "rollout_size": 64}
    players = trainer(*(f"roles.host.rollout.{key}={each}" for key, each in settings.items()))
    env = players.roles["host"].env.venv.unwrapped
    players.collect_rollout("host")
    episodes = env.games.episode.clone()
    moves = env.games.half_moves.clone()
    players.collect_rollout("host")
    going_on = moves > 0
    started = env.games.episode[going_on] > episodes[going_on]
    ended = env.games.half_moves[going_on] == 0
    assert torch.equal(started, torch.ones_like(started) if reset == "true" else ended)
    assert started.all() == (reset == "true")
    fields = players.roles["host"].model.replay_buffer.state_dict()["fields"]
    assert not fields["terminated"][:2].all()


def test_b26_the_first_update_finds_experience_whatever_the_sizes():
    players = trainer(
        "game.max_num_points=2",
        "game.max_value=1",
        "roles.host.batch_size=64",
        "roles.host.rollout={initial_rollout_size: 1, rollout_size: 1, every_updates: 5,"
        " max_rollout_steps: 1, reset_each_rollout: true}",
    )
    players.train(2)
    assert players.roles["host"].updates == 2
