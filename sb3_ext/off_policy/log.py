"""Sums that stay on the device until a log is due, and the clock of the training loop.

Reading a number from a device waits for everything that was started on it. So losses and episode
results are summed where they are, and read together once per log interval.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from torch import Tensor

from sb3_ext.checkpoints.resume import walk_callbacks


class EpisodeSums:
    """Number, returns and lengths of the episodes that ended since the last reading."""

    _sums: Tensor | None = None

    def add(self, episode: dict[str, Any] | None) -> None:
        """Count the episodes that ended in one parallel step: `ParallelStep.episode`."""
        if episode is None:
            return
        ended = episode["ended"].float()
        sums = torch.stack([ended, episode["r"].float(), episode["l"].float()]) @ ended
        self._sums = sums if self._sums is None else self._sums + sums

    def take(self) -> tuple[int, float, float]:
        """Number of episodes, sum of their returns and of their lengths; starts again from 0."""
        if self._sums is None:
            return 0, 0.0, 0.0
        count, returns, lengths = self._sums.tolist()
        self._sums = None
        return int(count), returns, lengths

    def state_dict(self) -> dict[str, Tensor]:
        """The sums, if there are any; does not wait."""
        return {} if self._sums is None else {"sums": self._sums}

    def load_state_dict(self, state: Mapping[str, Tensor], device: torch.device) -> None:
        """Go on where `state_dict` was taken."""
        self._sums = state["sums"].to(device, copy=True) if state else None


class UpdateSums:
    """Means of what every update measures, by name, the last one a maximum."""

    def __init__(self, names: tuple[str, ...], device: torch.device | str) -> None:
        self.names = names
        self._sums = torch.zeros(len(names), device=device)
        self._largest: Tensor
        self.clear()

    def add(self, measured: Tensor) -> None:
        """Add one update's quantities, `[len(names)]`, detached."""
        self._sums = self._sums + measured
        self._largest = torch.maximum(self._largest, measured[-1])
        self._count += 1

    def all_finite(self) -> bool:
        """Whether everything since `clear` was a finite number (a sum keeps a NaN). Waits."""
        return bool(self._sums.isfinite().all())

    def read(self) -> dict[str, float]:
        """Means by name, the last one the maximum; empty if nothing was added. Waits."""
        if self._count == 0:
            return {}
        means = (self._sums / self._count).tolist()
        return dict(zip(self.names, [*means[:-1], self._largest.item()], strict=True))

    def state_dict(self) -> dict[str, Any]:
        """The sums and the number of updates in them; does not wait."""
        return {"count": self._count, "largest": self._largest, "sums": self._sums}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` of the same quantities was taken."""
        self._count = state["count"]
        self._largest = state["largest"].to(self._largest.device, copy=True)
        self._sums = state["sums"].to(self._sums.device, copy=True)

    def clear(self) -> None:
        """Start again."""
        self._sums = torch.zeros_like(self._sums)
        self._largest = torch.full_like(self._sums[-1], -torch.inf)
        self._count = 0


class Stopwatch(dict[str, float]):
    """Seconds spent on each kind of work."""

    @contextmanager
    def timed(self, work: str) -> Iterator[None]:
        """Add the time spent inside, also when it fails."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self[work] = self.get(work, 0.0) + time.perf_counter() - began


class LoopClock:
    """When to log, how fast the loop runs, and what it spends its time on.

    Seconds are of this process: on a device that works asynchronously they say when work was
    handed over, not when it was done. Counters of transitions and updates are those at the start of
    this `learn`.
    """

    def __init__(
        self, transitions: int, updates: int, every_seconds: float | None, every_updates: int | None
    ) -> None:
        self.every_seconds, self.every_updates = every_seconds, every_updates
        self._start = (time.perf_counter(), transitions, updates)
        self.seconds = Stopwatch(environment=0.0, update=0.0)
        self._logged_at = self._start[0]
        self._logged_seconds = dict(self.seconds)

    @property
    def total_seconds(self) -> float:
        """Since the start of this `learn`."""
        return time.perf_counter() - self._start[0]

    def is_due(self, updates: int) -> bool:
        """Whether a log is due, so many updates after the last one."""
        by_time, by_updates = self.every_seconds, self.every_updates
        if by_time is not None and time.perf_counter() - self._logged_at >= by_time:
            return True
        return by_updates is not None and updates >= by_updates

    def record(self, logger: Logger, transitions: int, updates: int) -> None:
        """Record the `time/` metrics and begin the next interval."""
        started, first_transition, first_update = self._start
        now = time.perf_counter()
        total = max(now - started, 1e-9)
        interval = max(now - self._logged_at, 1e-9)
        logger.record("time/fps", int((transitions - first_transition) / total))
        logger.record("time/updates_per_second", (updates - first_update) / total)
        logger.record("time/time_elapsed", int(total), exclude="tensorboard")
        logger.record("time/total_timesteps", transitions, exclude="tensorboard")
        for section, seconds in self.seconds.items():
            spent = seconds - self._logged_seconds[section]
            logger.record(f"time/{section}_share", spent / interval)
        self._logged_at = now
        self._logged_seconds = dict(self.seconds)


def callback_hooks(callback: BaseCallback, *names: str) -> list[Callable[[], None]]:
    """One function per name that calls this method of every callback inside that has it."""

    def call(name: str) -> None:
        for item in found:
            getattr(item, name, lambda: None)()

    found = list(walk_callbacks(callback))
    return [partial(call, name) for name in names]
