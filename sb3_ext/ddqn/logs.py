"""What a DDQN logs: episodes as stable-baselines3 counts them, updates, and where time goes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from stable_baselines3 import DQN
from stable_baselines3.common.utils import safe_mean
from torch import Tensor

from sb3_ext.adapter.seam import STEPS_BETWEEN_WRITES
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.types import Info, StateDict

MEASURED = ("loss", "grad_norm", "q_mean", "target_mean", "td_mean", "td_max")
"""What every update measures; means over the updates are logged."""


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


class Logs(DQN):
    """What `DDQN` counts and writes.

    Attributes:
        evaluation_buffer: As SB3's `ep_info_buffer`, of the last `evaluation_rows` rows alone.
        num_target_updates: Target updates so far.
        seconds: Spent on each kind of work since the last log.
    """

    ep_info_buffer: Any
    ep_success_buffer: Any
    evaluation_buffer: deque[Info]
    evaluation_rows: int
    log_interval_seconds: float | None
    log_interval_updates: int | None
    replay_buffer: Any
    seconds: Stopwatch
    num_target_updates = 0

    _collector: Any = None  # a `Collector`, while `learn` has been given one
    _finite_until_update = 0
    _fitting = False  # to a buffer: no transitions are collected
    _log_every: tuple[Any, ...] = (None, None, None)  # seconds, updates, episodes
    _logged_updates = 0
    _sums: Tensor  # of what the updates since the last log measured
    _unread: list[Info]

    @property
    def num_updates(self) -> int:
        """Gradient updates made so far."""
        return int(self._n_updates)

    def _measure(self, loss: Tensor, norm: Tensor, predicted: Tensor, target: Tensor) -> Tensor:
        """Add what an update measured to the sums for the next log; the batch's errors `[B]`."""
        errors = (predicted - target).abs()
        measured = [loss, norm, predicted.mean(), target.mean(), errors.mean(), errors.max()]
        self._sums = self._sums + torch.stack(measured)
        return errors

    def check_finite(self) -> None:
        """Raises FloatingPointError if a reward, loss or gradient was not finite. Waits."""
        if isinstance(self.replay_buffer, TensorReplayBuffer):
            self.replay_buffer.check_finite("rewards")
        if not self._sums.isfinite().all():
            raise FloatingPointError(
                "train/loss or its gradient became NaN or infinite in updates"
                f" {self._finite_until_update + 1} to {self.num_updates}; the weights are spoiled,"
                " go back to the last checkpoint and lower the learning rate or max_grad_norm"
            )
        self._finite_until_update = self.num_updates

    def _note_episodes(self, ended: Info) -> None:
        """Keep what a step says of episodes that ended; on an accelerator it is read rarely."""
        self._unread.append(ended)
        rarely = self.device.type != "cpu" and not self._log_every[2]  # as reading waits
        if not rarely or len(self._unread) >= STEPS_BETWEEN_WRITES:
            self.read_episodes()

    def read_episodes(self) -> None:
        """Count the episodes that ended, and put them into the windows; waits for the device."""
        unread, self._unread = self._unread, []
        for episode in unread:
            ended = episode["ended"].nonzero()[:, 0]
            self._episode_num += len(ended)
            rows = ended[-self._stats_window_size :]
            for row, total, length in zip(
                *(each.tolist() for each in (rows, episode["r"][rows], episode["l"][rows])),
                strict=True,
            ):
                told = {"r": total, "l": int(length)}
                self.ep_info_buffer.append(told)
                if row >= self.n_envs - self.evaluation_rows:
                    self.evaluation_buffer.append(told)
            if "is_success" in episode:
                found = episode["is_success"][rows].tolist()
                self.ep_success_buffer.extend(each for each in found if each == each)  # no NaN

    def dump_logs(self) -> None:
        """Write what happened since the last log; waits for the device once."""
        self.check_finite()
        self.read_episodes()
        record = self.logger.record
        if updates := self.num_updates - self._logged_updates:
            for name, mean in zip(MEASURED, (self._sums / updates).tolist(), strict=True):
                record(f"train/{name}", mean)
        self._sums = torch.zeros_like(self._sums)
        self._logged_updates = self.num_updates
        record("train/n_updates", self.num_updates, exclude="tensorboard")
        record("train/learning_rate", float(self.policy.optimizer.param_groups[0]["lr"]))
        record("train/target_updates", self.num_target_updates)
        record("rollout/exploration_rate", self.exploration_rate)
        record("rollout/episodes", self._episode_num)
        for prefix, window in (("", self.ep_info_buffer), ("evaluation_", self.evaluation_buffer)):
            if window:
                record(f"rollout/{prefix}ep_rew_mean", safe_mean([each["r"] for each in window]))
                record(f"rollout/{prefix}ep_len_mean", safe_mean([each["l"] for each in window]))
        if self.ep_success_buffer:
            record("rollout/success_rate", safe_mean(self.ep_success_buffer))
        for name, value in getattr(self._collector, "statistics", {}).items():
            if isinstance(value, (int, float)):
                record(f"collector/{name}", value)
        self._record_times()
        self.logger.dump(step=self.num_updates if self._fitting else self.num_timesteps)

    def start_clock(self, updates: int | None = None, episodes: int | None = None) -> None:
        """Begin to count what logs are due by, and what they report as times and rates.

        Args:
            updates: updates between two logs.
            episodes: episodes between two logs. If both are None or 0, logs are due by the model's
                own intervals; else by these alone.
        """
        self._log_every = (None, updates, episodes)
        if not (updates or episodes):
            self._log_every = (self.log_interval_seconds, self.log_interval_updates, None)
        self.seconds = Stopwatch(environment=0.0, update=0.0)
        self._began = self._logged_at = time.perf_counter()
        self._counted_before = (self.num_timesteps, self.num_updates)

    def _log_if_due(self) -> None:
        seconds, updates, _ = self._log_every
        late = seconds is not None and time.perf_counter() - self._logged_at >= seconds
        if late or (updates is not None and self.num_updates - self._logged_updates >= updates):
            self.dump_logs()

    def between_logs(self) -> StateDict:
        """Return the values that a checkpoint holds in place of the model's own.

        With logs by the clock, these are as if a log had just been written: when the last one was
        depends on the speed of the machine, and equal runs must have equal checkpoints.
        """
        if self._log_every[0] is None:
            return {}
        return {"_logged_updates": self.num_updates, "_sums": torch.zeros_like(self._sums)}

    def _record_times(self) -> None:
        """On a device that works by itself they measure when work was queued, not when done."""
        record = self.logger.record
        now = time.perf_counter()
        total = max(now - self._began, 1e-9)
        interval = max(now - self._logged_at, 1e-9)
        transitions, updates = self._counted_before
        record("time/fps", int((self.num_timesteps - transitions) / total))
        record("time/updates_per_second", (self.num_updates - updates) / total)
        record("time/time_elapsed", int(total), exclude="tensorboard")
        record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        for work, spent in self.seconds.items():
            record(f"time/{work}_share", spent / interval)
            self.seconds[work] = 0.0
        self._logged_at = now
