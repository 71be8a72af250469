"""Checkpoints from which training resumes exactly, also for time limits and Ctrl-C."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.adapter.sb3_private import walk_callbacks
from sb3_ext.callbacks.base import Every, PeriodicCallback, stop_training
from sb3_ext.checkpoints.resume import save_run
from sb3_ext.config.checks import check_count
from sb3_ext.runs.command import RunSignals
from sb3_ext.runs.files import going_on_without
from sb3_ext.runs.ranks import ranks_of


class Checkpoints(PeriodicCallback):
    """Save the whole run periodically and at the end, see `sb3_ext.checkpoints.resume`.

    It saves before a rollout, after the updates of the one before: only then can `learn` start from
    the state. Put it last in the list, so that the other callbacks have seen the same data as the
    model.

    If a loss is NaN, nothing is written and training ends with a FloatingPointError. If the disk is
    full, a `CheckpointWarning` appears and training continues, except at the end.

    Args:
        run_dir: the folder of the run.
        every: how often to save.
        keep_last: number of checkpoints to keep, at least 1.
    """

    between_rollouts = True

    def __init__(
        self,
        run_dir: str | os.PathLike[str],
        every: Every | Mapping[str, Any],
        *,
        keep_last: int = 2,
    ) -> None:
        super().__init__(every)
        self.run_dir = Path(run_dir)
        self.keep_last = check_count("keep_last", keep_last)
        self._requested = False

    def request(self) -> None:
        """Save at the next opportunity. Safe to call from a signal handler."""
        self._requested = True

    def _is_due(self) -> bool:
        return ranks_of(self.model).any(super()._is_due() or self._requested)

    def act(self) -> None:
        """Saves; training continues if the disk is full."""
        self._requested = False
        with going_on_without("checkpoint", self.run_dir):
            self.save()

    def _on_training_end(self) -> None:
        self.save()

    def save(self) -> Path:
        """Saves now. Exact only between two blocks of updates.

        Raises:
            FloatingPointError: a loss was NaN or infinite.
            OSError: the checkpoint could not be written.
        """
        model: Any = self.model
        callbacks = self.locals.get("callback", self)
        return save_run(model, self.run_dir, callbacks, keep_last=self.keep_last)


class Signals(BaseCallback):
    """Save a checkpoint on signals: SIGTERM and SIGINT then end training, SIGUSR1 does not.

    The `Checkpoints` among the callbacks, if any, writes it after the current rollout and its
    updates. See `RunSignals` for a second signal and for threads. After an error in `learn` the
    previous handlers are restored, except with SB3's own algorithms.

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
        self._handlers.__enter__()

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
        if not hasattr(self.model, "request_stop"):  # no `after_learn`, when all is written
            self.after_learn()

    def after_learn(self) -> None:
        """Restore the previous handlers."""
        self._handlers.__exit__()
