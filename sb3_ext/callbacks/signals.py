"""Checkpoints on request of the operating system: for time limits, preemption and Ctrl-C."""

from __future__ import annotations

import signal

from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.callbacks.base import stop_training
from sb3_ext.callbacks.checkpoints import Checkpoints
from sb3_ext.checkpoints.resume import walk_callbacks
from sb3_ext.runs.signals import RunSignals


class Signals(BaseCallback):
    """SIGTERM and SIGINT end training with a checkpoint, SIGUSR1 writes one and goes on.

    They are written by the `Checkpoints` among the callbacks, if there are any.

    The handlers only note what came; it is acted upon at the next step, and the checkpoint is
    written when the rollout and its updates are done. A second SIGTERM or SIGINT is handled as
    without this callback (it ends the program at once). The handlers of before are put back when
    training ends.

    Signals reach only the main thread; in another one this callback does nothing.

    Attributes:
        received: the signal that ended training, for the exit code; None if there was none.
    """

    def __init__(self, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.received: signal.Signals | None = None
        self._wanted: str | None = None
        self._handlers = RunSignals(self._stop, self._save)

    def _stop(self, received: signal.Signals) -> None:
        self.received, self._wanted = received, received.name

    def _save(self) -> None:
        self._wanted = self._wanted or "SIGUSR1"

    def _on_training_start(self) -> None:
        self.received = self._wanted = None
        self._handlers.install()

    def _on_step(self) -> bool:
        wanted, self._wanted = self._wanted, None
        if wanted is None:
            return True
        if self.verbose:
            print(f"{wanted}: a checkpoint will be written after this rollout")
        for callback in walk_callbacks(self.locals.get("callback")):
            if isinstance(callback, Checkpoints):
                callback.request()
        return self.received is None or stop_training(self.model)

    def _on_training_end(self) -> None:
        self._handlers.restore()
