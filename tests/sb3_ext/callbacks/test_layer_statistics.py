"""Means and deviations of weights and gradients."""

from __future__ import annotations

from typing import Any

import pytest
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.callbacks import LayerStatistics
from sb3_ext.schedules.frequency import Every
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.callbacks.helpers import StepHook, keep_logs
from tests.sb3_ext.ddqn.helpers import make_model

KINDS = ("weight_mean", "weight_std", "gradient_mean", "gradient_std")


def test_values_of_every_trained_parameter() -> None:
    expected: dict[str, float] = {}

    def look(callback: BaseCallback) -> None:
        for name, parameter in callback.model.policy.named_parameters():
            if parameter.grad is not None:
                for kind, tensor in (("weight", parameter), ("gradient", parameter.grad)):
                    expected[f"layers/{name}/{kind}_mean"] = tensor.mean().item()
                    expected[f"layers/{name}/{kind}_std"] = tensor.std(correction=0).item()

    model = make_model(log_interval_updates=1)
    logs = keep_logs(model)
    model.learn(240, [StepHook(look), LayerStatistics(Every(updates=1))])
    logged = {}
    for dump in logs.dumps[:-1]:
        logged.update({k: v for k, v in dump.items() if k.startswith("layers/")})
    names = [name for name, _ in model.q_net.named_parameters()]
    assert sorted(logged) == sorted(f"layers/q_net.{n}/{kind}" for n in names for kind in KINDS)
    assert not any("target" in name for name in logged)
    assert logged == pytest.approx(expected)


def test_rhythm() -> None:
    model = make_model(log_interval_updates=1)
    logs = keep_logs(model)
    model.learn(320, LayerStatistics({"updates": 10}))
    key = next(key for dump in logs.dumps for key in dump if key.startswith("layers/"))
    updates = [dump["train/n_updates"] for dump in logs.dumps if key in dump]
    # Recorded when the next rollout begins, written with that rollout's updates.
    assert updates == [11, 21, 31]


def test_before_the_first_update_there_is_nothing() -> None:
    model = make_model(learning_starts=10_000)
    logs = keep_logs(model)
    model.learn(160, LayerStatistics(Every(transitions=8)))
    assert not any(key.startswith("layers/") for dump in logs.dumps for key in dump)


def test_stock_algorithms() -> None:
    env = TensorVecEnv(ToyVectorEnv(8))
    model = DQN("MlpPolicy", env, buffer_size=400, learning_starts=0, device="cpu")
    logs: Any = keep_logs(model)
    model.learn(160, LayerStatistics(Every(transitions=32)), log_interval=1)
    keys = {key for dump in logs.dumps for key in dump if key.startswith("layers/")}
    assert len(keys) == 4 * len(list(model.q_net.parameters()))
