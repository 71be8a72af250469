"""Counts of actions and their entropy."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.callbacks import ActionCounts
from sb3_ext.callbacks.action_counts import entropy_of_counts
from sb3_ext.schedules.frequency import Every
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.callbacks.helpers import StepHook, game_model, keep_logs
from tests.sb3_ext.checkpoints.helpers import equal
from tests.sb3_ext.ddqn.helpers import MaskedToy, make_model, weights


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([5, 5, 5, 5], 1.0),
        ([9, 0, 0, 0], 0.0),
        ([1, 1, 0, 0], 0.5),
        ([1, 3], -(0.25 * math.log2(0.25) + 0.75 * math.log2(0.75))),
        ([0, 0, 0], 0.0),
        ([7], 0.0),
    ],
)
def test_b25_entropy(counts: list[int], expected: float) -> None:
    assert entropy_of_counts(torch.tensor(counts)) == pytest.approx(expected, abs=1e-12)


def test_counts_are_those_of_the_rollouts() -> None:
    expected = torch.zeros(4, dtype=torch.int64)

    def count(callback: BaseCallback) -> None:
        for action in callback.locals["actions"].tolist():
            expected[action] += 1

    model = make_model(log_interval_updates=1)
    logs = keep_logs(model)
    counts = ActionCounts(Every(transitions=320))
    model.learn(320, [StepHook(count), counts])
    assert counts.last["rollout"] == expected.tolist()
    assert sum(counts.last["rollout"]) == 320
    assert sum(counts.last["greedy"]) == 8
    shares = [logs.values(f"actions/{action}")[-1] for action in range(4)]
    assert shares == pytest.approx((expected / 320).tolist())
    assert logs.values("actions/entropy")[-1] == pytest.approx(entropy_of_counts(expected))
    assert logs.values("actions/most_common_share")[-1] == pytest.approx(max(shares))


def test_counting_begins_again_after_each_log() -> None:
    model, counts = make_model(), ActionCounts(Every(transitions=80))
    model.learn(200, counts)
    assert sum(counts.last["rollout"]) == 80
    assert counts.state_dict()["counts"].sum() == 40


def test_a_collapsed_policy_shows() -> None:
    """With a bias that drowns everything else, only exploration varies."""
    model = make_model(TensorVecEnv(ToyVectorEnv(8)), mask_source="none", exploration_rate=0.0)
    with torch.no_grad():
        model.q_net.q_net[1].bias[2] = 1e6
    counts = ActionCounts(Every(transitions=80))
    logs = keep_logs(model)
    model.learn(80, counts)
    assert counts.last["greedy"] == [0, 0, 8, 0]
    assert logs.values("actions/greedy_entropy") == [0.0]
    assert logs.values("actions/greedy_most_common_share") == [1.0]


@pytest.mark.parametrize("env", [lambda: TensorVecEnv(MaskedToy(8)), lambda: None])
def test_greedy_choices_are_legal_and_training_is_not_touched(env: Any) -> None:
    legal: list[bool] = []

    class Checked(ActionCounts):
        def _record(self, counts: torch.Tensor, prefix: str) -> None:
            if prefix:
                rows = self.training_env.venv  # type: ignore[attr-defined]
                masks = ToyVectorEnv.action_masks(rows)
                legal.append(bool((counts <= masks.sum(0)).all()))
            super()._record(counts, prefix)

    first, second = make_model(env()), make_model(env())
    first.learn(320)
    second.learn(320, Checked(Every(transitions=16)))
    assert equal(weights(first), weights(second))
    assert len(legal) == 20
    assert all(legal)


@pytest.mark.parametrize("algorithm", [DQN, PPO])
def test_stock_algorithms(algorithm: Any) -> None:
    arguments = {"n_steps": 10} if algorithm is PPO else {"buffer_size": 100}
    env = TensorVecEnv(ToyVectorEnv(8))
    model = algorithm("MlpPolicy", env, device="cpu", seed=0, **arguments)
    counts = ActionCounts(Every(transitions=80))
    model.learn(160, counts)
    assert sum(counts.last["rollout"]) == 80
    assert sum(counts.last["greedy"]) == 8


def test_both_seats_of_the_game() -> None:
    for seat, actions in (("host", 4), ("agent", 3)):
        counts = ActionCounts(Every(transitions=80), greedy=seat == "host")
        game_model(seat).learn(80, counts)
        assert len(counts.last["rollout"]) == actions
        assert ("greedy" in counts.last) == (seat == "host")


def test_continuous_actions_are_refused() -> None:
    from gymnasium import spaces

    model = make_model()
    model.action_space = spaces.Box(-1.0, 1.0, (2,))  # type: ignore[assignment]
    counts = ActionCounts(Every(updates=1))
    counts.init_callback(model)
    with pytest.raises(ValueError, match="need a Discrete action space, got Box"):
        counts.on_training_start({}, {})


def test_state_goes_on() -> None:
    whole, first, second = (ActionCounts(Every(transitions=160)) for _ in range(3))
    make_model().learn(320, whole)
    model = make_model()
    model.learn(80, first)
    second.load_state_dict(first.state_dict())
    model.learn(240, second, reset_num_timesteps=False)
    assert sum(second.last["rollout"]) == 160
    assert second.state_dict()["every"] == whole.state_dict()["every"]
