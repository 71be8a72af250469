"""Where the time of training goes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from sb3_ext.callbacks.base import PeriodicCallback
from sb3_ext.config.checks import check_number
from sb3_ext.schedules.frequency import Every


class Timers(PeriodicCallback):
    """Measures rollouts, what lies between them, and sections of your own.

    Logs, each time it is due, means since the last time: ``time/rollout_ms`` of a rollout, with the
    environment, the choice of actions and callbacks; ``time/update_ms`` from the end of a rollout
    to the beginning of the next, which is updates and logs; and ``time/<name>_ms`` of sections:

        timers = Timers(Every(updates=1000))
        with timers.section("my_reward"):
            ...

    With ``slow_seconds`` a rollout, an update or a section that takes longer is counted in
    ``time/<name>_slow``, and the first of each name is a warning.

    On an accelerator work is only handed over; ``synchronize=True`` waits for it at both ends of
    everything that is measured, which costs some speed.

    Attributes:
        totals: seconds and number of times since the beginning of `learn`, by name.
        slow: how many of these times were slow, likewise.
    """

    def __init__(
        self,
        every: Every | Mapping[str, Any],
        *,
        synchronize: bool = False,
        slow_seconds: float | None = None,
    ) -> None:
        super().__init__(every)
        self.synchronize = synchronize
        if slow_seconds is not None:
            check_number("slow_seconds", slow_seconds, low=0, above=True)
        self.slow_seconds = slow_seconds
        self.slow: dict[str, int] = {}
        self.totals: dict[str, tuple[float, int]] = {}
        self._logged: dict[str, tuple[float, int]] = {}
        self._mark: float | None = None  # when a rollout began or ended last

    def _now(self) -> float:
        if self.synchronize and self.model.device.type == "cuda":
            torch.cuda.synchronize(self.model.device)
        return time.perf_counter()

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Adds the time spent inside to what is measured under a name."""
        began = self._now()
        try:
            yield
        finally:
            self._add(name, self._now() - began)

    def _add(self, name: str, seconds: float) -> None:
        total, count = self.totals.get(name, (0.0, 0))
        self.totals[name] = (total + seconds, count + 1)
        if self.slow_seconds is not None and seconds > self.slow_seconds:
            self.slow[name] = self.slow.get(name, 0) + 1
            if self.slow[name] == 1:
                allowed = f"slow_seconds is {self.slow_seconds:g}"
                warnings.warn(f"timers: {name} took {seconds:.3g} s, {allowed}", stacklevel=2)

    def _on_training_start(self) -> None:
        self.totals, self._logged, self.slow = {}, {}, {}
        self._mark = None

    def _on_rollout_start(self) -> None:
        self._add_since_mark("update")
        if self._is_due():
            self._log()

    def _on_rollout_end(self) -> None:
        self._add_since_mark("rollout")

    def _add_since_mark(self, name: str) -> None:
        now = self._now()
        if self._mark is not None:
            self._add(name, now - self._mark)
        self._mark = now

    def _log(self) -> None:
        for name, (total, count) in self.totals.items():
            seconds, times = self._logged.get(name, (0.0, 0))
            if count > times:
                mean = (total - seconds) / (count - times)
                self.logger.record(f"time/{name}_ms", 1000.0 * mean)
        for name, times in self.slow.items():
            self.logger.record(f"time/{name}_slow", times)
        self._logged = dict(self.totals)
