"""Signals: a clean checkpoint and an end, or a checkpoint and on; real signals throughout."""

import os
import signal

import pytest

from sb3_ext.callbacks import Checkpoints, Signals
from sb3_ext.callbacks.base import Every
from sb3_ext.checkpoints.models import model_state
from sb3_ext.checkpoints.resume import resume
from sb3_ext.runs.checkpoint import list_checkpoints
from tests.sb3_ext.helpers import StepHook, equal, make_model

HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


@pytest.fixture(autouse=True)
def _handlers_are_put_back():
    # A shell that starts the tests in the background has Ctrl-C ignored.
    started_with = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = {number: signal.getsignal(number) for number in HANDLED}
    yield
    after = {number: signal.getsignal(number) for number in HANDLED}
    for number, handler in before.items():
        signal.signal(number, handler)
    signal.signal(signal.SIGINT, started_with)
    assert after == before


def send(*numbers, at):
    """Sends this process signals when so many transitions were collected."""

    def step(callback):
        for number in numbers if callback.num_timesteps == at else ():
            os.kill(os.getpid(), number)

    return StepHook(step)


@pytest.mark.parametrize(
    ("number", "order", "train_freq"),
    [(signal.SIGTERM, -1, 4), (signal.SIGINT, 1, 1), (signal.SIGUSR1, 1, 1)],
)
def test_a_checkpoint_that_continues_exactly_is_written(
    number, order, train_freq, tmp_path, capsys
):
    """Training ends with it, but for SIGUSR1."""
    model, whole, other = (make_model(train_freq=train_freq, gradient_steps=3) for _ in "abc")
    signals = Signals(verbose=1)
    goes_on = number == signal.SIGUSR1
    never_due = Checkpoints(tmp_path, Every(transitions=10**9), keep_last=9)
    model.learn(400, [send(number, at=200), *[signals, never_due][::order]])
    assert signals.received == (None if goes_on else number)
    assert f"to continue with --resume {tmp_path}\n" in capsys.readouterr().out
    *at_the_end, written = list_checkpoints(tmp_path)
    assert len(at_the_end) == goes_on
    resume(other, written)
    assert 200 <= other.num_timesteps <= 200 + 8 * (train_freq + 1)
    assert model.num_timesteps == (400 if goes_on else other.num_timesteps)
    other.learn(400 - other.num_timesteps, reset_num_timesteps=False)
    assert equal(model_state(whole.learn(400)), model_state(other))


@pytest.mark.parametrize("order", [1, -1])
def test_usr1_does_not_undo_a_stop_that_came_with_it(order):
    model = make_model()
    signals = Signals()
    both = (signal.SIGTERM, signal.SIGUSR1)[::order]
    model.learn(400, [send(*both, at=160), signals])  # without checkpoints it only stops
    assert signals.received == signal.SIGTERM
    assert model.num_timesteps < 200


def test_second_interrupt_is_handled_as_usual():
    with pytest.raises(KeyboardInterrupt):
        make_model().learn(400, [Signals(), send(signal.SIGINT, signal.SIGINT, at=80)])


def test_handlers_of_the_program_are_put_back_and_asked_again():
    received = []
    signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    signals = Signals()
    for times in (1, 2):  # the same object again
        make_model().learn(80, [send(signal.SIGTERM, at=40), signals])
        os.kill(os.getpid(), signal.SIGTERM)
        assert received == [signal.SIGTERM] * times
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_an_error_in_training_puts_the_handlers_back():
    with pytest.raises(ZeroDivisionError):
        make_model().learn(80, [Signals(), StepHook(lambda _: 1 / 0)])
