"""Where the time of training goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from sb3_ext.callbacks.base import PeriodicCallback
from sb3_ext.schedules.frequency import Every

__all__ = ["Stopwatch", "Timers"]


class Stopwatch:
    """Adds up the time of what is done under some names.

    Args:
        now: the time in seconds.

    Attributes:
        totals: seconds and number of times, by name.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.totals: dict[str, tuple[float, int]] = {}
        self._now = now

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Adds the time spent inside to what is measured under a name."""
        began = self._now()
        try:
            yield
        finally:
            self.add(name, self._now() - began)

    def add(self, name: str, seconds: float) -> None:
        """Adds one more time."""
        total, count = self.totals.get(name, (0.0, 0))
        self.totals[name] = (total + seconds, count + 1)


class Timers(PeriodicCallback):
    """Measures rollouts, what lies between them, and sections of your own.

    Logs, each time it is due, means since the last time: ``time/rollout_ms`` of a rollout, with the
    environment, the choice of actions and callbacks; ``time/update_ms`` from the end of a rollout
    to the beginning of the next, which is updates and logs; and ``time/<name>_ms`` of sections:

        timers = Timers(Every(updates=1000))
        with timers.section("my_reward"):
            ...

    On an accelerator work is only handed over; ``synchronize=True`` waits for it at both ends of
    everything that is measured, which costs some speed.
    """

    def __init__(self, every: Every | Mapping[str, Any], *, synchronize: bool = False) -> None:
        super().__init__(every)
        self.synchronize = synchronize
        self._watch = Stopwatch(self._now)
        self._logged: dict[str, tuple[float, int]] = {}
        self._rollout_began: float | None = None
        self._rollout_ended: float | None = None

    def _now(self) -> float:
        if self.synchronize and self.model.device.type == "cuda":
            torch.cuda.synchronize(self.model.device)
        return time.perf_counter()

    @property
    def totals(self) -> dict[str, tuple[float, int]]:
        """Seconds and number of times since the beginning of `learn`, by name."""
        return self._watch.totals

    def section(self, name: str) -> AbstractContextManager[None]:
        """Adds the time spent inside to what is measured under a name."""
        return self._watch.section(name)

    def _on_training_start(self) -> None:
        self._watch, self._logged = Stopwatch(self._now), {}
        self._rollout_began = self._rollout_ended = None

    def _on_rollout_start(self) -> None:
        now = self._now()
        if self._rollout_ended is not None:
            self._watch.add("update", now - self._rollout_ended)
        self._rollout_began, self._rollout_ended = now, None
        if self._is_due():
            self._log()

    def _on_rollout_end(self) -> None:
        self._rollout_ended = self._now()
        if self._rollout_began is not None:
            self._watch.add("rollout", self._rollout_ended - self._rollout_began)

    def _log(self) -> None:
        for name, (total, count) in self.totals.items():
            seconds, times = self._logged.get(name, (0.0, 0))
            if count > times:
                mean = (total - seconds) / (count - times)
                self.logger.record(f"time/{name}_ms", 1000.0 * mean)
        self._logged = dict(self.totals)
