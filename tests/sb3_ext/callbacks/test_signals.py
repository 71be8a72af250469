"""Signals: a clean checkpoint and an end, or a checkpoint and on; real signals throughout."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.callbacks import Checkpoints, Signals
from sb3_ext.checkpoints.checkpoint import list_checkpoints
from sb3_ext.checkpoints.model_state import model_state
from sb3_ext.checkpoints.resume import resume
from sb3_ext.schedules.frequency import Every
from tests.sb3_ext.callbacks.helpers import StepHook
from tests.sb3_ext.checkpoints.helpers import equal, scheduled_stock
from tests.sb3_ext.ddqn.helpers import make_model

HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


@pytest.fixture(autouse=True)
def _handlers_are_put_back() -> Any:
    # A shell that starts the tests in the background has Ctrl-C ignored.
    started_with = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = {number: signal.getsignal(number) for number in HANDLED}
    yield
    after = {number: signal.getsignal(number) for number in HANDLED}
    for number, handler in before.items():
        signal.signal(number, handler)
    signal.signal(signal.SIGINT, started_with)
    assert after == before


def send(number: int, at: int) -> StepHook:
    """Sends this process a signal when so many transitions were collected."""

    def step(callback: BaseCallback) -> None:
        if callback.num_timesteps == at:
            os.kill(os.getpid(), number)

    return StepHook(step)


def rare(run_dir: Path) -> Checkpoints:
    """Checkpoints that are never due by themselves."""
    return Checkpoints(run_dir, Every(transitions=10**9), keep_last=9)


@pytest.mark.parametrize(
    ("number", "order", "train_freq"),
    [
        (signal.SIGTERM, "signals first", 1),
        (signal.SIGINT, "signals last", 1),
        (signal.SIGTERM, "signals last", 4),
        (signal.SIGINT, "signals first", 4),
    ],
)
def test_stop_with_a_checkpoint_that_continues_exactly(
    number: signal.Signals, order: str, train_freq: int, tmp_path: Path
) -> None:
    def make() -> Any:
        return make_model(train_freq=train_freq, gradient_steps=3)

    model, signals = make(), Signals()
    callbacks: list[Any] = [signals, rare(tmp_path)]
    if order == "signals last":
        callbacks.reverse()
    model.learn(400, [send(number, at=200), *callbacks])
    assert signals.received == number
    assert 200 <= model.num_timesteps <= 200 + 8 * (train_freq + 1)
    assert len(list_checkpoints(tmp_path)) == 1
    whole, other = make(), make()
    whole.learn(400)
    resume(other, tmp_path)
    assert other.num_timesteps == model.num_timesteps
    other.learn(400 - other.num_timesteps, reset_num_timesteps=False)
    assert equal(model_state(whole), model_state(other))


def test_usr1_saves_and_goes_on(tmp_path: Path) -> None:
    model, signals = make_model(), Signals()
    model.learn(400, [send(signal.SIGUSR1, at=160), signals, rare(tmp_path)])
    assert signals.received is None
    assert model.num_timesteps == 400
    path = list_checkpoints(tmp_path)[-1]
    assert path.name.endswith("160") or path.name.endswith("168")
    other = make_model()
    resume(other, path)
    other.learn(400 - other.num_timesteps, reset_num_timesteps=False)
    assert equal(model_state(model), model_state(other))


@pytest.mark.parametrize("order", [1, -1])
def test_usr1_does_not_undo_a_stop_that_came_with_it(order: int) -> None:
    model, signals = make_model(), Signals()
    both = [send(signal.SIGTERM, at=160), send(signal.SIGUSR1, at=160)]
    model.learn(400, [*both[::order], signals])  # without checkpoints it only stops
    assert signals.received == signal.SIGTERM
    assert model.num_timesteps < 200


def test_second_interrupt_is_handled_as_usual() -> None:
    def twice(callback: BaseCallback) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        make_model().learn(400, [Signals(), StepHook(twice)])


def test_stock_algorithms_stop_too(tmp_path: Path) -> None:
    from stable_baselines3 import DQN

    model, signals = scheduled_stock(DQN), Signals()
    model.learn(640, [send(signal.SIGTERM, at=208), signals, rare(tmp_path)])
    assert signals.received == signal.SIGTERM
    assert model.num_timesteps < 240
    other = scheduled_stock(DQN)
    resume(other, tmp_path)
    assert other.num_timesteps == model.num_timesteps


def test_handlers_of_the_program_are_put_back_and_asked_again() -> None:
    received: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        signals = Signals()
        make_model().learn(80, signals)
        os.kill(os.getpid(), signal.SIGTERM)
        assert received == [signal.SIGTERM]
        make_model().learn(80, [send(signal.SIGTERM, at=40), signals])  # the same object again
        assert received == [signal.SIGTERM]
        os.kill(os.getpid(), signal.SIGTERM)
        assert received == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_an_error_in_training_puts_the_handlers_back() -> None:
    def fail(callback: BaseCallback) -> None:
        raise RuntimeError("from a callback")

    with pytest.raises(RuntimeError, match="from a callback"):
        make_model().learn(80, [Signals(), StepHook(fail)])
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_in_another_thread_nothing_is_installed() -> None:
    found: list[Any] = []

    def look(callback: BaseCallback) -> None:
        found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=lambda: make_model().learn(16, [Signals(), StepHook(look)]))
    thread.start()
    thread.join()
    assert len(found) == 2
    assert set(found) == {signal.getsignal(signal.SIGTERM)}
