"""Learning from a replay buffer alone, without an environment."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Self

from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.utils import configure_logger

from sb3_ext.config.checks import check_count
from sb3_ext.networks.policy_scores import in_mode
from sb3_ext.off_policy.log import LoopClock, callback_hooks
from sb3_ext.off_policy.model import OffPolicyModel


class OfflineModel(OffPolicyModel):
    """An off-policy model that can be fitted to what others have collected.

    Attributes:
        stop_requested: Whether the running `learn` or `fit` is to end, see `request_stop`.
    """

    log_interval_seconds: float | None
    log_interval_updates: int | None
    stop_requested: bool = False

    def request_stop(self) -> None:
        """End the running `learn` once the updates for what was collected are made, or `fit` now.

        A callback that returns False ends `learn` before them, so that a resumed run would differ.
        """
        self.stop_requested = True

    def fit(
        self,
        buffer: ReplayBuffer | str | Path | None = None,
        *,
        updates: int,
        callback: MaybeCallback = None,
        log_interval: int | None = None,
        tb_log_name: str = "fit",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Make updates from a replay buffer; no environment is asked for anything.

        Callbacks see every update as a step: `on_step` is called after it, one that counts its
        calls (SB3's `EvalCallback`) counts updates, and False ends the fit. Schedules of the
        progress go from 0 to 1 in this call. Logs are written with the number of updates.

        Args:
            buffer: To learn from, or the file that `save_replay_buffer` wrote, which becomes the
                model's own; None: the one that the model has.
            updates: How many, at least 1.
            callback: As in `learn`.
            log_interval: Updates between two logs; None: the constructor's intervals.
            tb_log_name: Of the run in TensorBoard.
            reset_num_timesteps: Whether a new run in TensorBoard begins.
            progress_bar: Show one, as in `learn`.

        Raises:
            TypeError: The buffer is none.
            ValueError: The buffer is empty or of other spaces, or the target network follows
                transitions, of which there are none.
            FloatingPointError: A loss or gradient became NaN or infinite.
        """
        updates = check_count("updates", updates)
        if self.ranks.size > 1:
            raise ValueError("fit: learns in one process, not on several ranks")
        if getattr(self, "target_update_unit", "updates") != "updates":
            raise ValueError("target_update_unit: must be 'updates' for fit, got 'transitions'")
        self._take_buffer(buffer)
        self.stop_requested = False
        self.start_time = time.time_ns()
        self._num_timesteps_at_start = self.num_timesteps
        if not self._custom_logger:
            self._logger = configure_logger(
                self.verbose, self.tensorboard_log, tb_log_name, reset_num_timesteps
            )
        intervals = (self.log_interval_seconds, self.log_interval_updates)
        if log_interval is not None:
            intervals = (None, log_interval)
        self.clock = LoopClock(self.num_timesteps, self.num_updates, *intervals)
        self._total_timesteps = self.num_timesteps + updates  # what SB3's progress bar shows
        callbacks = self._init_callback(callback, progress_bar)
        hooks = ("before_train", "after_train", "after_learn")
        before_train, after_train, after_learn = callback_hooks(callbacks, *hooks)
        self._fitting = True
        try:
            callbacks.on_training_start(locals(), globals())
            with in_mode(self.policy, training=False):
                for done in range(updates):
                    self._update_current_progress_remaining(done, updates)
                    before_train()
                    with self.clock.seconds.timed("update"):
                        self.train(gradient_steps=1, batch_size=self.batch_size)
                    after_train()
                    if not callbacks.on_step() or self.stop_requested:
                        break
                    if self.clock.is_due(self.num_updates - self._logged_updates):
                        self.dump_logs()
            self.dump_logs()
            callbacks.on_training_end()
        finally:
            self._fitting = False
            after_learn()
        return self

    def _take_buffer(self, buffer: ReplayBuffer | str | Path | None) -> None:
        """Make a buffer, or that in a file, the model's own after a look at it."""
        own = self.replay_buffer
        if isinstance(buffer, (str, Path)):
            self.load_replay_buffer(buffer)
        elif not isinstance(buffer, (ReplayBuffer, type(None))):
            raise TypeError(f"buffer must be a replay buffer or the path of one, got {buffer!r}")
        elif buffer is not None:
            buffer.device = self.device
            self.replay_buffer = buffer
        taken = self.replay_buffer
        fault = "is empty" if taken is None or taken.size() == 0 else None
        for name in ("observation_space", "action_space"):
            if fault is None and getattr(taken, name) != getattr(self, name):
                fault = f"has {name} {getattr(taken, name)}, the model {getattr(self, name)}"
        if fault is not None:
            self.replay_buffer = own
            raise ValueError(f"buffer: {fault}")
