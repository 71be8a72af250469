"""The loop of a DDQN: collect, update, log; or update alone, from a buffer.

It runs over tensors and stores a transition before the callbacks see the step; SB3 stores it after.
So a callback that saves or stops finds buffer, counters and environment at the same step.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import MaybeCallback, RolloutReturn, TrainFreq
from stable_baselines3.common.utils import configure_logger
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.observations import to_device
from sb3_ext.config.checks import check_count
from sb3_ext.ddqn.collector import (
    Collector,
    Explorer,
    LazyArray,
    LazyInfos,
    ParallelStep,
    TensorCollector,
)
from sb3_ext.ddqn.logs import LoopClock, callback_hooks, episode_sums
from sb3_ext.ddqn.state import DDQNState
from sb3_ext.networks.policy_scores import in_mode
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.runs.ranks import Ranks


class DDQNLoop(DDQNState):
    """What `DDQN` is without its arguments, its choice of actions and its updates.

    Attributes:
        stop_requested: Whether the running `learn` or `fit` is to end, see `request_stop`.
    """

    stop_requested: bool = False
    _infos: Any = None  # of the last step, where an environment of arrays gave them

    @abstractmethod
    def explorer(self) -> Explorer:
        """What chooses the actions to collect with now; asked before every parallel step."""

    @abstractmethod
    def playing_weights(self) -> Mapping[str, Tensor]:
        """Those that the explorer of a collector elsewhere needs."""

    @abstractmethod
    def update_target(self) -> None:
        """Move the target network towards the online one, whatever is due."""

    @property
    def collects_tensors(self) -> bool:
        """Whether the environment is played without leaving its device."""
        return isinstance(self.env, TensorVecEnv)

    def learn(  # type: ignore[override]
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = None,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
        *,
        collector: Collector | None = None,
    ) -> Self:
        """Collect and update until at least `total_timesteps` transitions were collected.

        As in SB3, where `tb_log_name` is the algorithm's name too, but `log_interval` is in updates
        and replaces the constructor's intervals for this call; callbacks' methods `before_train()`
        and `after_train()` are called around every block of updates, and `after_learn()` when the
        call ends, also by an error; and a `collector`, if there is one, plays instead of the
        model's own environment, whose rows it fills in the replay buffer, and is told the weights
        before it is asked for `train_freq` parallel steps. It may give more; the updates due follow
        the transitions.

        Raises:
            FloatingPointError: A loss or gradient became NaN or infinite. Noticed when logs are
                due, at `save` and at the end.
        """
        if collector is not None and self.ranks.size > 1:
            raise ValueError("collector: one of several ranks plays its games itself")
        total_timesteps, callback = self._setup_learn(
            *(total_timesteps, callback, reset_num_timesteps),
            *(tb_log_name or type(self).__name__, progress_bar),
        )
        with self._session(callback, log_interval, total_timesteps, collector) as update:
            while self.num_timesteps < total_timesteps and not self.ranks.any(
                self.stop_requested or self.ranks.deserted
            ):
                rollout = self.collect_rollouts(
                    self.env, callback, self.train_freq, self.replay_buffer
                )
                if not rollout.continue_training:
                    break
                update(self._updates_due(rollout.episode_timesteps))
                self._log_if_due()
        return self

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
        if self.target_update_unit != "updates":
            raise ValueError("target_update_unit: must be 'updates' for fit, got 'transitions'")
        self._take_buffer(buffer)
        self.stop_requested, self.start_time = False, time.time_ns()
        self._num_timesteps_at_start = self.num_timesteps
        if not self._custom_logger:
            place = (self.verbose, self.tensorboard_log, tb_log_name, reset_num_timesteps)
            self._logger = configure_logger(*place)
        total = self._total_timesteps = self.num_timesteps + updates  # for SB3's progress bar
        callbacks = self._init_callback(callback, progress_bar)
        self._fitting = True
        try:
            with self._session(callbacks, log_interval, total) as update:
                for done in range(updates):
                    self._update_current_progress_remaining(done, updates)
                    update(1)
                    if not callbacks.on_step() or self.stop_requested:
                        break
                    self._log_if_due()
        finally:
            self._fitting = False
        return self

    def request_stop(self) -> None:
        """End the running `learn` once the updates for what was collected are made, or `fit` now.

        A callback that returns False ends `learn` before them, so that a resumed run would differ.
        """
        self.stop_requested = True

    def join(self, ranks: Ranks) -> None:
        """Learn together with other ranks; to be called by all of them before the first `learn`.

        The weights become those of the first rank, and the others take seeds of their own.

        Raises:
            ValueError: The model cannot learn so.
        """
        if ranks.size == 1:
            return
        with ranks.together():
            if not self.collects_tensors:
                raise ValueError("ranks: need a TensorVecEnv without a wrapper around it")
            if any(hasattr(module, "running_mean") for module in self.policy.modules()):
                raise ValueError("ranks: exclude BatchNorm, which is about the batch of one rank")
        self.ranks = ranks
        ranks.copy_from_first(self.policy.state_dict().values())
        if ranks.rank > 0:
            self.set_random_seed(ranks.seed(self.seed))

    def _setup_learn(self, *args: Any, **kwargs: Any) -> tuple[int, BaseCallback]:
        buffer = self.replay_buffer
        if self.verbose >= 1 and not buffer.is_allocated:
            print(buffer.memory_estimate())
        before, counted = self._last_obs, self.num_timesteps
        self.stop_requested = False
        total_timesteps, callback = super()._setup_learn(*args, **kwargs)
        self._earlier_transitions += counted - self.num_timesteps
        if self._last_obs is not before:  # the environments were reset
            self.last_legal = None
            buffer.cut()
        self._start_clock(None)
        return total_timesteps, callback

    def _start_clock(self, log_interval: int | None) -> None:
        intervals = (self.log_interval_seconds, self.log_interval_updates)
        intervals = intervals if log_interval is None else (None, log_interval)
        self.clock = LoopClock(self.num_timesteps, self.num_updates, *intervals)

    @contextmanager
    def _session(
        self,
        callback: BaseCallback,
        log_interval: int | None,
        total_timesteps: int,
        collector: Any = None,
    ) -> Iterator[Any]:
        """What surrounds a loop; gives a function that makes so many updates."""
        self._start_clock(log_interval)
        before_train, after_train, after_learn = callback_hooks(
            callback, "before_train", "after_train", "after_learn"
        )

        def update(number: int) -> None:
            if number > 0:
                before_train()
                with self.clock.seconds.timed("update"):
                    self.train(gradient_steps=number, batch_size=self.batch_size)
                after_train()

        session = getattr(collector, "session", None)
        try:
            # Before the session, which may take its time, so that callbacks hear of signals.
            about = {"self": self, "callback": callback, "total_timesteps": total_timesteps}
            callback.on_training_start(about, {})
            self.ranks.ready()
            with nullcontext(collector) if session is None else session(self) as self._collector:
                with in_mode(self.policy, training=False):
                    yield update
                self.dump_logs()
                callback.on_training_end()
        finally:
            after_learn()
            self._collector = None

    def _log_if_due(self) -> None:
        if self.clock.is_due(self.num_updates - self._logged_updates):
            self.dump_logs()

    def _take_buffer(self, buffer: ReplayBuffer | str | Path | None) -> None:
        """Make a buffer, or that in a file, the model's own after a look at it."""
        own = self.replay_buffer
        if isinstance(buffer, (str, Path)):
            self.load_replay_buffer(buffer)
        elif not isinstance(buffer, (TensorReplayBuffer, type(None))):
            raise TypeError(f"buffer must be a TensorReplayBuffer or its path, got {buffer!r}")
        elif buffer is not None:
            buffer.device = self.device
            self.replay_buffer = buffer
        taken = self.replay_buffer
        fault = "is empty" if taken.size() == 0 else None
        for name in ("observation_space", "action_space"):
            if fault is None and getattr(taken, name) != getattr(self, name):
                fault = f"has {name} {getattr(taken, name)}, the model {getattr(self, name)}"
        if fault is not None:
            self.replay_buffer = own
            raise ValueError(f"buffer: {fault}")

    def _updates_due(self, transitions: int) -> int:
        """Gradient steps to make after so many new transitions; carries fractions over."""
        if self.num_timesteps <= self.learning_starts:
            return 0
        self._updates_owed += self.updates_for(transitions)
        due = int(self._updates_owed)
        self._updates_owed -= due
        return due

    def updates_for(self, transitions: int) -> float:
        """Gradient steps that so many transitions call for, once learning has begun."""
        own = transitions // self.ranks.size
        if self.replay_ratio is not None:
            return self.replay_ratio * own / self.batch_size
        if self.gradient_steps < 0:
            return transitions
        return self.gradient_steps * own / (self.train_freq.frequency * self.n_envs)

    def collect_rollouts(  # type: ignore[override]
        self,
        env: VecEnv | None,
        callback: BaseCallback,
        train_freq: TrainFreq,
        replay_buffer: Any,
        **_: Any,
    ) -> RolloutReturn:
        """Play `train_freq` parallel steps into the buffer, networks in evaluation mode.

        Further arguments of SB3 are ignored. The number of episodes in the result is 0: counting
        them would wait for the device.
        """
        with in_mode(self.policy, training=False):
            callback.on_rollout_start()
            before, number = self.num_timesteps, 0
            for played in self.play(env, train_freq.frequency):
                obs, actions, rewards, terminated, truncated, reached, legal = played[:7]
                replay_buffer.add_batch(
                    *(obs, reached, actions, rewards, terminated, truncated, legal),
                    steps=None if rewards.dim() == 1 else len(rewards),
                )
                stored = self.num_timesteps + rewards.numel() * self.ranks.size
                for step in played.each():
                    number += 1
                    callback.update_locals({"env": env, "num_collected_steps": number})
                    if not self._count(step, callback):
                        if self.ranks.size == 1:
                            self.num_timesteps = stored
                            return RolloutReturn(stored - before, 0, continue_training=False)
                        self.request_stop()  # the others play on, and then wait for this rank
            callback.on_rollout_end()
        return RolloutReturn(self.num_timesteps - before, 0, continue_training=True)

    def _count(self, step: ParallelStep, callback: BaseCallback) -> bool:
        """Count one stored step, and show it to the callbacks; whether they want to go on."""
        if step.episode is not None:
            self._episode_sums += episode_sums(step.episode)
            if self.evaluation_rows:
                first = self.n_envs - self.evaluation_rows
                self._evaluation_sums += episode_sums(step.episode, first)
        before = self.num_timesteps
        self.num_timesteps += len(step.rewards) * self.ranks.size
        callback.update_locals(
            {
                "actions": step.actions,
                "dones": LazyArray(step.terminated | step.truncated),
                "infos": self._infos or LazyInfos(step),
                "new_obs": self._last_obs if self._collector is None else step.next_observations,
                "replay_buffer": self.replay_buffer,
                "rewards": LazyArray(step.rewards),
                "self": self,
            }
        )
        goes_on = callback.on_step()
        self._update_current_progress_remaining(self.num_timesteps, self._total_timesteps)
        if self.target_update_unit == "transitions":
            interval = self.target_update_interval
            if self.num_timesteps // interval > before // interval:
                self.update_target()
        return goes_on

    @contextmanager
    def collecting_from(self, collector: Collector) -> Iterator[None]:
        """`collect_rollouts` takes its steps from a collector while the block lasts."""
        self._collector = collector
        try:
            yield
        finally:
            self._collector = None

    def play(self, env: Any, steps: int) -> Iterator[ParallelStep]:
        """Parallel steps in tensors, from the collector that was given or from the environment."""
        self._infos = None
        if self._collector is not None:
            rate = self.explorer().exploration_rate
            self._collector.publish(self.num_updates, self.playing_weights(), rate)
            with self.clock.seconds.timed("environment"):
                played = self._collector.collect(steps)
            yield from (step.on(self.device) for step in played)
            return
        source = self.random_streams.explore
        own = TensorCollector(env, self.explorer(), self.legal_actions, source)
        own.observation = to_device(self._last_obs, self.device)
        if self._vec_normalize_env is not None:
            own.original = to_device(self._last_original_obs, self.device)
        own.legal = self.last_legal
        for number in range(steps):
            if number > 0:
                own.explorer = self.explorer()
            before = own.seconds
            step = own.step()
            self.clock.seconds["environment"] += own.seconds - before
            self._last_obs, self._last_original_obs = own.observation, own.original
            self.last_legal, self._infos = own.legal, own.infos
            if own.infos is not None:
                dones = (step.terminated | step.truncated).cpu().numpy()
                self._update_info_buffer(own.infos, dones)
            yield step
