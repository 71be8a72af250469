"""Checkpoints on request of the operating system: for time limits, preemption and Ctrl-C."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.callbacks.checkpoints import Checkpoints
from sb3_ext.callbacks.stopping import stop_training
from sb3_ext.checkpoints.callback_state import walk_callbacks

__all__ = ["Signals"]


class Signals(BaseCallback):
    """SIGTERM and SIGINT end training with a checkpoint, SIGUSR1 writes one and goes on.

    The handlers only note what came; it is acted upon at the next step, and the checkpoint is
    written when the rollout and its updates are done. A second SIGTERM or SIGINT is handled as
    without this callback (it ends the program at once). The handlers of before are put back when
    training ends.

    Signals reach only the main thread; in another one this callback does nothing.

    Attributes:
        received: the signal that ended training, for the exit code; None if there was none.
    """

    def __init__(self, checkpoints: Checkpoints | None = None, verbose: int = 0) -> None:
        """Prepares; handlers are installed when training starts.

        Args:
            checkpoints: what writes the checkpoints; None finds it among the callbacks. Without
                any, signals only end training.
            verbose: 1 prints a line for each signal.
        """
        super().__init__(verbose)
        self.checkpoints = checkpoints
        self.received: signal.Signals | None = None
        self._wanted: signal.Signals | None = None
        self._before: dict[int, Any] = {}

    def _on_training_start(self) -> None:
        self.restore()
        self.received = self._wanted = None
        if self.checkpoints is None:
            for callback in walk_callbacks(self.locals.get("callback")):
                if isinstance(callback, Checkpoints):
                    self.checkpoints = callback
        if threading.current_thread() is not threading.main_thread():
            return
        numbers = [signal.SIGTERM, signal.SIGINT]
        if hasattr(signal, "SIGUSR1"):  # not on Windows
            numbers.append(signal.SIGUSR1)
        for number in numbers:
            self._before[number] = signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        received = signal.Signals(number)
        if received.name == "SIGUSR1":
            self._wanted = self._wanted or received
            return
        if self.received is not None:
            self.restore()
            signal.raise_signal(number)
            return
        self._wanted = self.received = received

    def _on_step(self) -> bool:
        wanted, self._wanted = self._wanted, None
        if wanted is None:
            return True
        if self.verbose:
            print(f"{wanted.name}: a checkpoint will be written after this rollout")
        if self.checkpoints is not None:
            self.checkpoints.request()
        return self.received is None or stop_training(self.model)

    def _on_training_end(self) -> None:
        self.restore()

    def restore(self) -> None:
        """Puts the handlers of before back; again is harmless."""
        while self._before:
            number, handler = self._before.popitem()
            # None stands for a handler that was not installed from Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
