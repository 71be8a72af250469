"""Callbacks of SB3 in the two roles: from the configuration and as objects."""

import pytest

from sb3_ext.two_player import HostAgentTrainer
from tests.sb3_ext.helpers import Diary
from tests.sb3_ext.two_player.helpers import tiny

ROLLOUT = ["rollout start", "step", "step", "step", "rollout end"]
UPDATE = ["before train", "after train"]


@pytest.mark.parametrize("name", ["small", "ppo_host"])
def test_a_callback_is_told_everything_in_order(name):
    settings = {
        "small": ["roles.host.rollout.initial_rollout_size=4"],
        "ppo_host": ["roles.host.n_epochs=1", "roles.host.batch_size=12"],
    }[name]
    diary = Diary()
    given = diary if name == "small" else [diary]  # one callback needs no list
    players = HostAgentTrainer(tiny(*settings, name=name), callbacks={"host": given})

    def told(*given, **more):
        diary.lines.clear()
        players.train(*given, **more)
        return [line.rstrip(" 0123456789") for line in diary.lines]

    second = [] if name == "small" else ROLLOUT  # every second update
    whole = [*ROLLOUT, *UPDATE, *ROLLOUT, *UPDATE, *second]
    assert told(2) == ["training start", *whole, "training end"]
    assert told(1) == ["training start", *UPDATE, *ROLLOUT, "training end"]
    assert len(diary.locals["dones"]) == diary.training_env.num_envs
    assert told(1, players="agent") == []


@pytest.mark.parametrize(
    ("name", "algorithm", "budget"),
    [
        ("small", "ddqn", {"max_updates": 3}),
        ("small", "dqn", {"max_timesteps": 30}),
        ("ppo_host", "ppo", {"max_seconds": 1e-6}),
        ("ppo_host", "ppo", {"max_timesteps": 30}),
    ],
)
def test_a_budget_of_a_role_ends_training(name, algorithm, budget):
    data = tiny(name=name)
    host = data["roles"]["host"]
    host["callbacks"] = [{"callback": "stop_conditions", **budget}]
    if algorithm == "dqn":
        host |= {"algorithm": "dqn", "policy": "MlpPolicy"}
        host |= {"policy_arguments": {}, "algorithm_arguments": {}}
    players = HostAgentTrainer(data)
    result = players.train(200)
    host = players.roles["host"]
    assert result.step == players.total_steps <= 5
    assert host.updates == budget.get("max_updates", host.updates)
    assert host.transitions - budget.get("max_timesteps", host.transitions) in range(13)
    assert players.train(200).step == result.step  # the budget is used up


def test_logs_of_callbacks_are_among_the_metrics():
    data = tiny("logging.every_steps=2")
    data["roles"]["host"]["callbacks"] = [
        {"callback": "action_counts", "every": {"updates": 1}},
        {"callback": "timers", "every": {"updates": 1}},
        {"callback": "rho_evaluation", "opponents": ["random"], "every": {"updates": 2},
         "games": 5, "max_value": 5},
    ]  # fmt: skip
    players = HostAgentTrainer(data)
    players.train(3)
    metrics = players.log_metrics()
    assert 0 <= metrics["host/actions/entropy"] <= 1
    assert metrics["host/time/rollout_ms"] > 0
    assert metrics["host/rho/random"] > 0
    assert not any(name.startswith("agent/actions") for name in metrics)
    assert "host/time/fps" not in metrics
