"""Timers."""

from __future__ import annotations

import time

import pytest
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.callbacks import Timers
from sb3_ext.callbacks import timers as module
from sb3_ext.schedules.frequency import Every
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.callbacks.helpers import StepHook, keep_logs
from tests.sb3_ext.ddqn.helpers import make_model


class Clock:
    """Stands still unless it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(module.time, "perf_counter", lambda: self.now)

    def move(self, seconds: float) -> None:
        self.now += seconds


def test_rollouts_and_what_lies_between(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    model = make_model(train_freq=2, learning_starts=0)
    logs, timers = keep_logs(model), Timers(Every(transitions=64))
    hook = StepHook(lambda _: clock.move(1.0))
    hook.after_train = lambda: clock.move(0.25)  # type: ignore[attr-defined]
    model.learn(144, [timers, hook])
    assert timers.totals["rollout"] == (18.0, 9)
    assert timers.totals["update"] == (2.0, 8)
    assert logs.values("time/rollout_ms") == [2000.0]
    assert logs.values("time/update_ms") == [250.0]


def test_sections_and_means_since_the_last_log(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    model = make_model(log_interval_updates=1, learning_starts=0)
    logs, timers = keep_logs(model), Timers(Every(transitions=40))

    def work(callback: BaseCallback) -> None:
        with timers.section("thinking"):
            clock.move(1.0 if callback.num_timesteps <= 40 else 3.0)

    model.learn(96, [timers, StepHook(work)])
    assert timers.totals["thinking"] == (5 * 1.0 + 7 * 3.0, 12)
    assert logs.values("time/thinking_ms") == [1000.0, 3000.0]


def test_a_section_that_raises_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, timers = Clock(monkeypatch), Timers(Every(updates=1))
    timers.model = make_model()

    def fail() -> None:
        with timers.section("bad"):
            clock.move(2.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert timers.totals == {"bad": (2.0, 1)}


def test_stock_algorithms_and_a_real_clock() -> None:
    env = TensorVecEnv(ToyVectorEnv(8))
    model = DQN("MlpPolicy", env, buffer_size=400, learning_starts=0, device="cpu")
    timers = Timers(Every(transitions=64), synchronize=True)
    began = time.perf_counter()
    model.learn(160, timers)
    total = sum(seconds for seconds, _ in timers.totals.values())
    assert 0 < total <= time.perf_counter() - began
    assert timers.totals["rollout"][1] == 5


def test_slow_sections_are_counted_and_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    model = make_model(log_interval_updates=1, learning_starts=0)
    logs, timers = keep_logs(model), Timers(Every(transitions=40), slow_seconds=2.0)

    def work(callback: BaseCallback) -> None:
        for name, seconds in (("thinking", 3.0), ("writing", 0.5)):
            with timers.section(name):
                clock.move(seconds if callback.num_timesteps > 40 else 0.1)

    with pytest.warns(UserWarning, match="timers: .* took .* s, slow_seconds is 2") as told:
        model.learn(96, [timers, StepHook(work)])
    assert timers.slow["thinking"] == 7
    assert "writing" not in timers.slow
    assert sum("thinking" in str(each.message) for each in told) == 1
    assert logs.values("time/thinking_slow")[0] > 0
    with pytest.raises(ValueError, match="slow_seconds must lie in"):
        Timers(Every(updates=1), slow_seconds=0.0)
