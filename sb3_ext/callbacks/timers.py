"""Where the time of training goes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from sb3_ext.callbacks.base import PeriodicCallback
from sb3_ext.schedules.frequency import Every


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

    Attributes:
        totals: seconds and number of times since the beginning of `learn`, by name.
    """

    def __init__(self, every: Every | Mapping[str, Any], *, synchronize: bool = False) -> None:
        super().__init__(every)
        self.synchronize = synchronize
        self.totals: dict[str, tuple[float, int]] = {}
        self._logged: dict[str, tuple[float, int]] = {}
        self._rollout_began: float | None = None
        self._rollout_ended: float | None = None

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

    def _on_training_start(self) -> None:
        self.totals, self._logged = {}, {}
        self._rollout_began = self._rollout_ended = None

    def _on_rollout_start(self) -> None:
        now = self._now()
        if self._rollout_ended is not None:
            self._add("update", now - self._rollout_ended)
        self._rollout_began, self._rollout_ended = now, None
        if self._is_due():
            self._log()

    def _on_rollout_end(self) -> None:
        self._rollout_ended = self._now()
        if self._rollout_began is not None:
            self._add("rollout", self._rollout_ended - self._rollout_began)

    def _log(self) -> None:
        for name, (total, count) in self.totals.items():
            seconds, times = self._logged.get(name, (0.0, 0))
            if count > times:
                mean = (total - seconds) / (count - times)
                self.logger.record(f"time/{name}_ms", 1000.0 * mean)
        self._logged = dict(self.totals)
