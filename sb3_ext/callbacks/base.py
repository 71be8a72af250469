"""The base of callbacks, with a period that survives a resume, and those that save a run."""

from __future__ import annotations

import copy
import signal
import time
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter
from torch import Tensor

from sb3_ext.adapter.seam import num_updates, walk_callbacks
from sb3_ext.checkpoints.resume import save_run
from sb3_ext.config.checks import check_count, check_number, shown
from sb3_ext.runs.command import RunSignals
from sb3_ext.runs.files import RunFolder, going_on_without
from sb3_ext.types import Metrics, StateDict, StrPath


@dataclass(kw_only=True)
class Every:
    """A trigger that is due each time a counter passes a multiple of its period.

    Counters are the algorithm's own, so a resume does not disturb them. Seconds count from
    construction, and start again after a resume. Exactly one period is given, above 0.
    """

    updates: int | None = None
    transitions: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        given = {unit: period for unit, period in vars(self).items() if period is not None}
        if len(given) != 1:
            raise ValueError(f"every: need one of updates, transitions, seconds, got {given}")
        ((self._unit, period),) = given.items()
        self._period = check_number(f"every.{self._unit}", period, low=0, above=True)
        self._began = time.monotonic()
        self.last = 0
        """Number of periods that had passed at the last call."""

    def due(self, **counters: float) -> bool:
        """Return whether the trigger is due at these counts; asking counts as having acted."""
        counters["seconds"] = time.monotonic() - self._began
        # A counter that went back belongs to a new run of the same object.
        before, self.last = self.last, int(counters[self._unit] // self._period)
        return self.last > before

    def go_on_after(self, last: int) -> None:
        """Continue from a saved `last`."""
        self.last, self._began = last, time.monotonic() - last * self._period


Period = Every | Mapping[str, Any]
"""How often: an `Every`, or its arguments such as ``{"updates": 1000}``."""


class PeriodicCallback(BaseCallback):
    """A callback that acts periodically; a resumed run keeps the same period.

    A subclass defines `act`, and lists in `remembered` the attributes that a checkpoint needs.

    Args:
        every: how often, an `Every` or ``{"updates": 1000}``.
    """

    remembered: ClassVar[tuple[str, ...]] = ()
    between_rollouts = False
    """Act when a rollout begins, after the updates of the one before, rather than in a step."""

    def __init__(self, every: Period) -> None:
        super().__init__()
        if not isinstance(every, (Every, Mapping)):
            raise TypeError(f"every must be a mapping like {{updates: 1000}}, got {shown(every)}")
        # A copy: two callbacks that were given the same object are both due.
        self.every = copy.copy(every) if isinstance(every, Every) else Every(**every)

    @abstractmethod
    def act(self) -> None:
        """Act; called each time the period ends."""

    def _is_due(self) -> bool:
        model = self.model
        return self.every.due(updates=num_updates(model), transitions=model.num_timesteps)

    def _on_rollout_start(self) -> None:
        if self.between_rollouts and self._is_due():
            self.act()

    def _on_step(self) -> bool:
        if not self.between_rollouts and self._is_due():
            self.act()
        return True

    def state_dict(self) -> StateDict:
        """What a checkpoint needs, as tensors and plain data."""
        own = {name: copy.deepcopy(getattr(self, name)) for name in self.remembered}
        return {"every": self.every.last, **own}

    def load_state_dict(self, state: StateDict) -> None:
        """Continue from a saved `state_dict`."""
        self.every.go_on_after(state["every"])
        for name in self.remembered:
            setattr(self, name, copy.deepcopy(state[name]))


class NumberWriter(KVWriter):
    """Takes the numbers of a log, each time that it is written. A subclass defines `take`."""

    def write(self, key_values: dict[str, Any], key_excluded: Any, step: int = 0) -> None:
        """Called by SB3's logger."""
        self.take({k: float(v) for k, v in key_values.items() if isinstance(v, Real)}, step)

    @abstractmethod
    def take(self, numbers: Metrics, step: int) -> None:
        """Take the numbers of one step of the log."""

    def close(self) -> None:
        """Nothing is held open."""


def as_tensor(given: dict[str, Any], name: str) -> Tensor:
    """Return a value from a callback's locals, as a tensor on its device."""
    return torch.as_tensor(dict.__getitem__(given, name))  # not as the array that others see


def stop_training(model: Any) -> bool:
    """Ask a model to end `learn`; return the value that `_on_step` must return.

    Our algorithms first make the updates for the collected data, so that a final checkpoint
    continues exactly. SB3's own stop in the middle of a rollout.
    """
    if hasattr(model, "request_stop"):
        model.request_stop()
        return True
    model.stop_requested = True  # for code that drives it without `learn`
    return False


class Checkpoints(PeriodicCallback):
    """Save the whole run periodically and at the end, see `sb3_ext.checkpoints.resume`.

    It saves before a rollout, after the updates of the one before: only then can `learn` start from
    the state. Put it last in the list, so that the other callbacks have seen the same data as the
    model. Other processes are kept out of the folder from the start of training to its end; `learn`
    raises `FolderInUseError` if one of them is in it.

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
        run_dir: StrPath,
        every: Period,
        *,
        keep_last: int = 2,
    ) -> None:
        super().__init__(every)
        self.run_dir = Path(run_dir)
        self.keep_last = check_count("keep_last", keep_last)
        self._requested = False
        self._held = ExitStack()

    def request(self) -> None:
        """Save at the next opportunity. Safe to call from a signal handler."""
        self._requested = True

    def _is_due(self) -> bool:
        return super()._is_due() or self._requested

    def act(self) -> None:
        """Saves; training continues if the disk is full."""
        self._requested = False
        with going_on_without("checkpoint", self.run_dir):
            self.save()

    def _on_training_start(self) -> None:
        self._held.enter_context(RunFolder(self.run_dir, "run_dir"))

    def _on_training_end(self) -> None:
        with self._held:
            self.save()

    def save(self) -> Path:
        """Saves now. Exact only between two blocks of updates.

        Raises:
            FloatingPointError: a loss was NaN or infinite.
            OSError: the checkpoint could not be written.
        """
        callbacks = self.locals.get("callback", self)
        return save_run(self.model, self.run_dir, callbacks, keep_last=self.keep_last)


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
        for callback in walk_callbacks(self.locals.get("callback")):
            if isinstance(callback, Checkpoints):
                callback.request()
                if self.verbose:
                    print(
                        f"{wanted}: a checkpoint will be written to {callback.run_dir}, to "
                        f"continue with --resume {callback.run_dir}"
                    )
        return self.received is None or stop_training(self.model)

    def _on_training_end(self) -> None:
        if not hasattr(self.model, "request_stop"):  # no `after_learn`, when all is written
            self.after_learn()

    def after_learn(self) -> None:
        """Restore the previous handlers."""
        self._handlers.close()
