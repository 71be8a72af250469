"""SB3's and sb3-contrib's own algorithms learn the toy through TensorVecEnv, unchanged.

Score: reward per step over 200 episodes. Baselines: uniformly random presses have -0.125, random
legal presses 0.469, a perfect player 1. Measured with these seeds: 1.00 for every algorithm, 0.99
for RecurrentPPO. A learner that is not shown the button stays at 0.48 (DQN) and 0.45 (PPO).
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gymnasium.vector import VectorWrapper
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy as evaluate_maskable
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.evaluation import evaluate_policy

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.replay.buffers import TensorReplayBuffer
from tests.fakes import ToyVectorEnv

pytestmark = pytest.mark.learning

NUM_ENVS = 64
Q_LEARNING = {
    "learning_rate": 3e-3,
    "learning_starts": 256,
    "buffer_size": 20_000,
    "batch_size": 128,
    "train_freq": 1,
    "gradient_steps": 4,
    "target_update_interval": 256,
    "gamma": 0.5,
    "exploration_fraction": 0.5,
}
PROXIMAL = {"learning_rate": 1e-2, "n_steps": 16, "batch_size": 256, "n_epochs": 4, "gamma": 0.5}
# Algorithm, its arguments, transitions to train for, score to reach.
CASES: dict[str, tuple[Any, dict[str, Any], int, float]] = {
    "DQN": (DQN, Q_LEARNING, 3_000, 0.85),
    "QRDQN": (QRDQN, Q_LEARNING | {"policy_kwargs": {"n_quantiles": 10}}, 3_000, 0.85),
    "PPO": (PPO, PROXIMAL, 7_000, 0.85),
    "A2C": (A2C, {"learning_rate": 1e-2, "n_steps": 4, "gamma": 0.5}, 12_000, 0.85),
    "MaskablePPO": (MaskablePPO, PROXIMAL, 7_000, 0.85),
    "RecurrentPPO": (
        RecurrentPPO,
        PROXIMAL | {"policy_kwargs": {"lstm_hidden_size": 16}},
        6_000,
        0.7,
    ),
}


class HiddenButton(VectorWrapper):
    """The toy without the name of the button: nothing is left to learn but what is legal."""

    def reset(self, **kwargs: Any) -> Any:
        observation, info = self.env.reset(**kwargs)
        return self._hide(observation), info

    def step(self, actions: Any) -> Any:
        observation, *results, info = self.env.step(actions)
        if "final_obs" in info:
            info = info | {"final_obs": self._hide(info["final_obs"])}
        return (self._hide(observation), *results, info)

    def _hide(self, observation: Any) -> Any:
        if isinstance(observation, dict):
            return observation | {"target": torch.zeros_like(observation["target"])}
        buttons = observation.shape[1] // 2
        return torch.cat([torch.zeros_like(observation[:, :buttons]), observation[:, buttons:]], 1)


def trained(name: str, dict_obs: bool, hide: bool = False, **more: Any) -> tuple[float, float]:
    """Score before and after training."""
    algorithm, arguments, transitions, _ = CASES[name]
    illegal = "error" if name == "MaskablePPO" else "penalty"

    def environment() -> TensorVecEnv:
        toy = ToyVectorEnv(NUM_ENVS, dict_obs, illegal=illegal)
        return TensorVecEnv(HiddenButton(toy) if hide else toy)

    arguments = arguments | {"seed": 1, **more}
    arguments["policy_kwargs"] = {"net_arch": [64], **arguments.get("policy_kwargs", {})}
    policy = "MultiInput" if dict_obs else "Mlp"
    policy += "LstmPolicy" if name == "RecurrentPPO" else "Policy"
    model = algorithm(policy, environment(), **arguments)
    before = score(model, environment())
    model.learn(transitions)
    return before, score(model, environment())


def score(model: Any, env: TensorVecEnv) -> float:
    env.seed(99)
    evaluate = evaluate_maskable if isinstance(model, MaskablePPO) else evaluate_policy
    returns, lengths = evaluate(model, env, 200, return_episode_rewards=True)
    return sum(returns) / sum(lengths)


@pytest.mark.parametrize(
    ("name", "dict_obs"),
    [
        ("DQN", False),
        ("QRDQN", True),
        ("PPO", False),
        ("A2C", True),
        ("MaskablePPO", True),
        ("RecurrentPPO", False),
    ],
)
def test_stock_algorithm_learns(name: str, dict_obs: bool) -> None:
    before, after = trained(name, dict_obs)
    threshold = CASES[name][3]
    assert before < (0.6 if name == "MaskablePPO" else 0.3)
    assert after > threshold


@pytest.mark.parametrize(("name", "dict_obs"), [("DQN", True), ("PPO", False)])
def test_control_without_the_button_fails(name: str, dict_obs: bool) -> None:
    _, after = trained(name, dict_obs, hide=True)
    assert after < 0.6


@pytest.mark.parametrize("dict_obs", [False, True])
@pytest.mark.parametrize("n_steps", [1, 3])
def test_stock_dqn_learns_from_the_tensor_replay_buffer(dict_obs: bool, n_steps: int) -> None:
    _, after = trained(
        "DQN",
        dict_obs,
        replay_buffer_class=TensorReplayBuffer,
        replay_buffer_kwargs={"n_steps": n_steps, "gamma": 0.5},
    )
    assert after > 0.85
