"""What a training loop counts and times, and the hooks of callbacks around it.

Reading a number from a device waits for everything that was started on it. So losses and episode
results are summed where they are, and read together once per log interval.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from torch import Tensor

from sb3_ext.adapter.sb3_private import walk_callbacks


def episode_sums(episode: dict[str, Any], first_row: int = 0) -> Tensor:
    """Number, returns and lengths of episodes that ended in one parallel step, float `[3]`.

    Args:
        episode: `ParallelStep.episode`.
        first_row: Only those of rows from this one on.
    """
    ended = episode["ended"].float()[first_row:]
    results = (episode[key].float()[first_row:] for key in ("r", "l"))
    return torch.stack([ended, *results]) @ ended


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
        self._began, self._at_first = time.perf_counter(), (transitions, updates)
        self.seconds = Stopwatch(environment=0.0, update=0.0)  # since the last log
        self._logged_at = self._began

    def is_due(self, updates: int) -> bool:
        """Whether a log is due, so many updates after the last one."""
        by_time, by_updates = self.every_seconds, self.every_updates
        if by_time is not None and time.perf_counter() - self._logged_at >= by_time:
            return True
        return by_updates is not None and updates >= by_updates

    def record(self, logger: Logger, transitions: int, updates: int) -> None:
        """Record the `time/` metrics and begin the next interval."""
        now = time.perf_counter()
        total, interval = (max(now - then, 1e-9) for then in (self._began, self._logged_at))
        logger.record("time/fps", int((transitions - self._at_first[0]) / total))
        logger.record("time/updates_per_second", (updates - self._at_first[1]) / total)
        logger.record("time/time_elapsed", int(total), exclude="tensorboard")
        logger.record("time/total_timesteps", transitions, exclude="tensorboard")
        for section, spent in self.seconds.items():
            logger.record(f"time/{section}_share", spent / interval)
            self.seconds[section] = 0.0
        self._logged_at = now


def callback_hooks(callback: BaseCallback, *names: str) -> list[Callable[[], None]]:
    """One function per name that calls this method of every callback inside that has it."""

    def call(name: str) -> None:
        for item in found:
            getattr(item, name, lambda: None)()

    found = list(walk_callbacks(callback))
    return [partial(call, name) for name in names]
