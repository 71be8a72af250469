"""An off-policy algorithm of stable-baselines3 (2.9.2) whose loop runs over tensors.

The tensor loop runs when the environment is a `TensorVecEnv` and the buffer offers `add_batch`;
otherwise SB3's own numpy loop runs with the same exploration.

The tensor loop stores a transition before the callbacks see the step; SB3 stores it after. So a
callback that saves or stops finds buffer, counters and environment at the same step.
"""

from __future__ import annotations

import io
import pathlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import torch
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import (
    GymEnv,
    MaybeCallback,
    RolloutReturn,
    TrainFreq,
    TrainFrequencyUnit,
)
from stable_baselines3.common.utils import safe_mean
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.observations import consists_of_tensors, to_device
from sb3_ext.adapter.sb3_private import OBSERVATIONS
from sb3_ext.off_policy.callback_locals import LazyArray, LazyInfos
from sb3_ext.off_policy.collector import Collector, Explorer, ParallelStep, TensorCollector
from sb3_ext.off_policy.legality import LegalActions
from sb3_ext.off_policy.log import EpisodeSums, LoopClock, UpdateSums, callback_hooks
from sb3_ext.off_policy.random_streams import RandomStreams
from sb3_ext.replay.buffers import TensorReplayBuffer

__all__ = ["OffPolicy"]

Self = TypeVar("Self", bound="OffPolicy")


class OffPolicy(OffPolicyAlgorithm):
    """Building, loop, logs and saving.

    A subclass sets the attributes of arguments before it calls the constructor of SB3's algorithm,
    provides `explorer`, `playing_weights` and `train`, and makes and fills `update_sums`.

    Attributes:
        mask_source: As in `LegalActions`.
        log_interval_seconds, log_interval_updates: Log when so many have passed, unless None.
        replay_ratio: How many transitions are sampled for updates per transition collected; None:
            `gradient_steps` updates after every `train_freq` parallel steps.
        update_sums: What updates measured since the last log.
        last_legal: Legal actions at the last observation, if the environment was asked for them.
        own_counters: Names of the numbers that a resumed run needs beside those of SB3.
    """

    mask_source: str
    log_interval_seconds: float | None
    log_interval_updates: int | None
    replay_ratio: float | None
    update_sums: UpdateSums
    random_streams: RandomStreams
    clock: LoopClock

    last_legal: Tensor | None = None
    stop_requested: bool = False
    own_counters: tuple[str, ...] = ("_finite_until_update", "_logged_updates", "_updates_owed")

    _collector: Collector | None = None  # while `learn` has been given one
    _episode_sums: EpisodeSums
    _finite_until_update: int = 0
    _logged_updates: int = 0
    _saved_random_state: dict[str, Any] | None = None
    _transitions_of_step: int | None = None  # fewer than `n_envs` from one of several writers
    _updates_owed: float = 0.0

    @abstractmethod
    def explorer(self) -> Explorer:
        """What chooses the actions to collect with now; asked before every parallel step."""

    @abstractmethod
    def playing_weights(self) -> Mapping[str, Tensor]:
        """Those that the explorer of a collector elsewhere needs."""

    @property
    def num_updates(self) -> int:
        """Gradient updates made so far."""
        return int(self._n_updates)

    @property
    def collects_tensors(self) -> bool:
        """Whether `learn` collects with tensors rather than with SB3's numpy loop."""
        # The environment itself: around it, a wrapper of SB3 wants its own step to be called.
        return (
            isinstance(self.env, TensorVecEnv)
            and hasattr(self.replay_buffer, "add_batch")
            and isinstance(self.train_freq, TrainFreq)
            and self.train_freq.unit == TrainFrequencyUnit.STEP
        )

    def _setup_model(self) -> None:
        if self.replay_buffer_class is None:
            self.replay_buffer_class = TensorReplayBuffer
        self._find_legal_actions()
        # SB3 warns that n_steps is ignored by a buffer of a given class; ours was told.
        n_steps = self.n_steps
        self.n_steps = 1 if isinstance(self.replay_buffer, TensorReplayBuffer) else n_steps
        try:
            super()._setup_model()
        finally:
            self.n_steps = n_steps
        self._episode_sums = EpisodeSums()
        if self._saved_random_state is not None:
            self._load_random_state(self._saved_random_state)
            self._saved_random_state = None

    def _find_legal_actions(self) -> None:
        """Settle who knows the legal actions, and make the replay buffer to match."""
        spaces = (self.observation_space, self.action_space)
        self.legal_actions = LegalActions(*spaces, self.env, self.mask_source)
        buffer_class = self.replay_buffer_class
        assert buffer_class is not None
        from_environment = self.legal_actions.source == "environment"
        if not issubclass(buffer_class, TensorReplayBuffer):
            if from_environment:
                raise ValueError(
                    f"replay_buffer_class: got {buffer_class.__name__}, which cannot store the"
                    " environment's action_masks(); use TensorReplayBuffer or mask_source='none'"
                )
            return
        buffer = self.replay_buffer
        if isinstance(buffer, TensorReplayBuffer) and (
            buffer.store_next_legal == from_environment or buffer.size() > 0
        ):
            return
        defaults = {
            "n_steps": self.n_steps,
            "gamma": self.gamma if self.n_steps > 1 else None,
            "store_next_legal": from_environment,
        }
        self.replay_buffer = buffer_class(
            self.buffer_size,
            *spaces,
            device=self.device,
            n_envs=self.n_envs,
            optimize_memory_usage=self.optimize_memory_usage,
            **{**defaults, **self.replay_buffer_kwargs},
        )

    def set_env(self, env: GymEnv, force_reset: bool = True) -> None:
        """As in SB3."""
        super().set_env(env, force_reset)
        self._find_legal_actions()

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seed what SB3 seeds, and our exploration, `predict` and replay sampling; None: anew."""
        super().set_random_seed(seed)
        self.random_streams = RandomStreams(seed, self.device)
        if isinstance(self.replay_buffer, TensorReplayBuffer):
            self.replay_buffer.set_seed(self.random_streams.replay_seed)

    def _setup_learn(self, *args: Any, **kwargs: Any) -> tuple[int, BaseCallback]:
        buffer = self.replay_buffer
        if self.verbose >= 1 and isinstance(buffer, TensorReplayBuffer) and not buffer.is_allocated:
            print(buffer.memory_estimate())
        before = self._last_obs
        self.stop_requested = False
        total_timesteps, callback = super()._setup_learn(*args, **kwargs)
        if self._last_obs is not before:  # the environments were reset
            self.last_legal = None
        if self.collects_tensors:
            self._last_obs = to_device(self._last_obs, self.device)
        intervals = (self.log_interval_seconds, self.log_interval_updates)
        counters = (self.num_timesteps, self.num_updates)
        self.clock = LoopClock(*counters, *intervals, self._logged_updates)
        return total_timesteps, callback

    def learn(  # type: ignore[override]
        self: Self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = None,
        tb_log_name: str = "run",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
        *,
        collector: Collector | None = None,
    ) -> Self:
        """Collect and update until at least `total_timesteps` transitions were collected.

        As in SB3, but `log_interval` is in updates and replaces the constructor's intervals for
        this call; callbacks' methods `before_train()` and `after_train()` are called around every
        block of updates; and a `collector`, if there is one, plays instead of the model's own
        environment, whose rows it fills in the replay buffer, and is told the weights before every
        `train_freq` parallel steps.

        Raises:
            FloatingPointError: A loss or gradient became NaN or infinite. Noticed when logs are
                due, at `save` and at the end.
            ValueError: A collector cannot fill this model's replay buffer.
        """
        if collector is not None and not self.collects_tensors:
            raise ValueError(
                "collector: needs a TensorVecEnv, a TensorReplayBuffer and a train_freq in steps"
            )
        total_timesteps, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        if log_interval is not None:
            self.clock.every_seconds, self.clock.every_updates = None, log_interval
        callback.on_training_start(locals(), globals())
        self._collector = collector
        try:
            with self.training_mode(False):
                self._run(total_timesteps, callback)
        finally:
            self._collector = self._transitions_of_step = None
        self.dump_logs()
        callback.on_training_end()
        return self

    def _run(self, total_timesteps: int, callback: BaseCallback) -> None:
        """Collect, update, log, until enough transitions were collected or a callback stops."""
        before_train, after_train = callback_hooks(callback, "before_train", "after_train")
        assert self.env is not None
        assert isinstance(self.train_freq, TrainFreq)
        assert self.replay_buffer is not None
        while self.num_timesteps < total_timesteps and not self.stop_requested:
            rollout = self.collect_rollouts(
                self.env,
                callback,
                self.train_freq,
                self.replay_buffer,
                learning_starts=self.learning_starts,
            )
            if not rollout.continue_training:
                break
            gradient_steps = self._updates_due(rollout.episode_timesteps)
            if gradient_steps > 0:
                before_train()
                with self.clock.timed("update"):
                    self.train(gradient_steps=gradient_steps, batch_size=self.batch_size)
                after_train()
            if self.clock.is_due(self.num_updates):
                self.dump_logs()

    def _updates_due(self, transitions: int) -> int:
        """Gradient steps to make after so many new transitions; carries fractions over."""
        if self.num_timesteps <= self.learning_starts:
            return 0
        if self.replay_ratio is None:
            return self.gradient_steps if self.gradient_steps >= 0 else transitions
        self._updates_owed += self.replay_ratio * transitions / self.batch_size
        due = int(self._updates_owed)
        self._updates_owed -= due
        return due

    @contextmanager
    def training_mode(self, mode: bool) -> Iterator[None]:
        """Put the policy into training (True) or evaluation mode, and back even after an error."""
        before = self.policy.training
        if before != mode:
            self.policy.set_training_mode(mode)
        try:
            yield
        finally:
            if self.policy.training != before:
                self.policy.set_training_mode(before)

    def request_stop(self) -> None:
        """End the running `learn` once the updates for what was collected are made.

        A callback that returns False ends it before them, so that a resumed run would differ.
        """
        self.stop_requested = True

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        train_freq: TrainFreq,
        replay_buffer: ReplayBuffer,
        action_noise: Any = None,
        learning_starts: int = 0,
        log_interval: int | None = None,
    ) -> RolloutReturn:
        """Play `train_freq` parallel steps into the buffer, networks in evaluation mode.

        `log_interval` is ignored, see `learn`. The number of episodes in the result is 0 in the
        tensor loop: counting them would wait for the device.
        """
        with self.training_mode(False):
            if self.collects_tensors:
                return self._collect_tensors(env, callback, train_freq.frequency, replay_buffer)
            return super().collect_rollouts(
                env, callback, train_freq, replay_buffer, None, learning_starts, None
            )

    def _collect_tensors(
        self, env: Any, callback: BaseCallback, steps: int, replay_buffer: Any
    ) -> RolloutReturn:
        callback.on_rollout_start()
        before = self.num_timesteps
        for number, step in enumerate(self._play(env, steps), 1):
            obs, actions, rewards, terminated, truncated, reached, next_legal, episode, row = step
            replay_buffer.add_batch(
                obs, reached, actions, rewards, terminated, truncated, next_legal, first_row=row
            )
            self._episode_sums.add(episode)
            self.num_timesteps += len(rewards)
            self._transitions_of_step = len(rewards)
            callback.update_locals(
                {
                    "actions": actions,
                    "dones": LazyArray(terminated | truncated),
                    "env": env,
                    "infos": LazyInfos(step),
                    "new_obs": reached if self._collector is not None else self._last_obs,
                    "num_collected_steps": number,
                    "replay_buffer": replay_buffer,
                    "rewards": LazyArray(rewards),
                    "self": self,
                }
            )
            if not callback.on_step():
                return RolloutReturn(self.num_timesteps - before, 0, continue_training=False)
            self._update_current_progress_remaining(self.num_timesteps, self._total_timesteps)
            self._on_step()
        callback.on_rollout_end()
        return RolloutReturn(self.num_timesteps - before, 0, continue_training=True)

    def _play(self, env: Any, steps: int) -> Iterator[ParallelStep]:
        """Parallel steps in tensors, from the collector that was given or from the environment."""
        if self._collector is not None:
            rate = self.explorer().exploration_rate
            self._collector.publish(self.num_updates, self.playing_weights(), rate)
            with self.clock.timed("environment"):
                played = self._collector.collect(steps)
            yield from (step.on(self.device) for step in played)
            return
        source = self.random_streams.explore
        own = TensorCollector(env, self.explorer(), self.legal_actions, source)
        own.observation, own.legal = self._last_obs, self.last_legal
        for number in range(steps):
            if number > 0:
                own.explorer = self.explorer()
            before = own.seconds
            step = own.step()
            self.clock.seconds["environment"] += own.seconds - before
            self._last_obs, self.last_legal = own.observation, own.legal
            yield step

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        assert self._last_obs is not None
        obs = self.policy.obs_to_tensor(self._last_obs)[0]
        legal = self.legal_actions.now(obs, self.env, self.device, self.last_legal)
        action = self.explorer()(obs, legal, self.random_streams.explore).cpu().numpy()
        return action, action

    def _store_transition(  # type: ignore[override]
        self,
        replay_buffer: Any,
        buffer_action: np.ndarray,
        new_obs: Any,
        reward: np.ndarray,
        dones: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        self.last_legal, next_legal = self.legal_actions.after(
            self.env, self.device, torch.as_tensor(dones)
        )
        if next_legal is not None:
            # SB3's loop knows no masks.
            replay_buffer = SimpleNamespace(add=partial(replay_buffer.add, next_legal=next_legal))
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)

    def check_finite(self) -> None:
        """Raises FloatingPointError if a reward, loss or gradient was not finite. Waits."""
        if isinstance(self.replay_buffer, TensorReplayBuffer):
            self.replay_buffer.check_finite("rewards")
        if not self.update_sums.all_finite():
            raise FloatingPointError(
                "train/loss or its gradient became NaN or infinite in updates"
                f" {self._finite_until_update + 1} to {self.num_updates}; the weights are spoiled,"
                " go back to the last checkpoint and lower the learning rate or max_grad_norm"
            )
        self._finite_until_update = self.num_updates

    def dump_logs(self) -> None:
        """Write what happened since the last log; waits for the device once."""
        self.check_finite()
        for name, value in self.update_sums.read().items():
            self.logger.record(f"train/{name}", value)
        self.update_sums.clear()
        self._logged_updates = self.num_updates
        self.logger.record("train/n_updates", self.num_updates, exclude="tensorboard")
        count, returns, lengths = self._episode_sums.take()
        self._episode_num += count
        if count:
            self.logger.record("rollout/ep_rew_mean", returns / count)
            self.logger.record("rollout/ep_len_mean", lengths / count)
        elif self.ep_info_buffer:
            for name, key in (("ep_rew_mean", "r"), ("ep_len_mean", "l")):
                mean = safe_mean([info[key] for info in self.ep_info_buffer])
                self.logger.record(f"rollout/{name}", mean)
        self.logger.record("rollout/episodes", self._episode_num)
        if self.ep_success_buffer:
            self.logger.record("rollout/success_rate", safe_mean(self.ep_success_buffer))
        self.clock.record(self.logger, self.num_timesteps, self.num_updates)
        self.logger.dump(step=self.num_timesteps)

    def log_state(self) -> dict[str, Any]:
        """The sums for the next log, for a checkpoint."""
        episodes, updates = self._episode_sums.state_dict(), self.update_sums.state_dict()
        return {"episodes": episodes, "updates": updates}

    def load_log_state(self, state: Mapping[str, Any]) -> None:
        """Go on where `log_state` was taken."""
        self._episode_sums.load_state_dict(state["episodes"], self.device)
        self.update_sums.load_state_dict(state["updates"])

    def save(
        self,
        path: str | pathlib.Path | io.BufferedIOBase,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """As in SB3, without the replay buffer; FloatingPointError if `check_finite` raises."""
        self.check_finite()
        self._saved_random_state = self._random_state()
        try:
            super().save(path, exclude, include)
        finally:
            self._saved_random_state = None

    @classmethod
    def load(cls: type[Self], path: Any, *args: Any, **kwargs: Any) -> Self:  # type: ignore[override]
        """As in SB3; ValueError if the file names modules that have moved since."""
        try:
            return super().load(path, *args, **kwargs)
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("sb3_ext."):
                raise
            raise ValueError(
                f"{path}: names {error.name}, a module of an earlier version of sb3_ext; load it"
                " there, or take a checkpoint folder of the run"
            ) from error

    def _random_state(self) -> dict[str, Any]:
        streams = self.random_streams.state_dict()
        state: dict[str, Any] = {name: value.numpy() for name, value in streams.items()}
        if isinstance(self.replay_buffer, TensorReplayBuffer):
            state["replay"] = (self.replay_buffer.seed, self.replay_buffer.num_batches_drawn)
        return state

    def _load_random_state(self, state: dict[str, Any]) -> None:
        self.random_streams.load_state_dict(
            {name: torch.from_numpy(state[name].copy()) for name in ("explore", "predict")}
        )
        if "replay" in state and isinstance(self.replay_buffer, TensorReplayBuffer):
            seed, drawn = state["replay"]
            self.replay_buffer.set_seed(seed)
            self.replay_buffer.num_batches_drawn = drawn

    def _excluded_save_params(self) -> list[str]:
        ours = ["clock", "legal_actions", "random_streams", "update_sums"]
        ours += ["_collector", "_episode_sums", "_transitions_of_step", "last_legal"]
        ours += [OBSERVATIONS[0]] if consists_of_tensors(self._last_obs) else []
        return [*super()._excluded_save_params(), *ours]
