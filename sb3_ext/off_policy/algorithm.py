"""An off-policy algorithm of stable-baselines3 (2.9.2) whose loop runs over tensors.

The tensor loop runs when the environment is a `TensorVecEnv` and the buffer offers `add_batch`;
otherwise SB3's own numpy loop runs with the same exploration.

The tensor loop stores a transition before the callbacks see the step; SB3 stores it after. So a
callback that saves or stops finds buffer, counters and environment at the same step.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import torch
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import (
    MaybeCallback,
    RolloutReturn,
    TrainFreq,
    TrainFrequencyUnit,
)
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.observations import to_device
from sb3_ext.networks.policy_scores import in_mode
from sb3_ext.off_policy.callback_locals import LazyArray, LazyInfos
from sb3_ext.off_policy.collector import Collector, Explorer, ParallelStep, TensorCollector
from sb3_ext.off_policy.log import LoopClock, callback_hooks
from sb3_ext.off_policy.offline import OfflineModel
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.runs.ranks import Ranks


class OffPolicy(OfflineModel):
    """An off-policy model and its loop.

    A subclass sets the attributes of arguments before it calls the constructor of SB3's algorithm,
    provides `explorer`, `playing_weights` and `train`, and makes and fills `update_sums`.

    Attributes:
        log_interval_seconds, log_interval_updates: Log when so many have passed, unless None.
        replay_ratio: How many transitions are sampled for updates per transition collected; None:
            `gradient_steps` updates after every `train_freq` parallel steps.
    """

    replay_ratio: float | None

    _transitions_of_step: int | None = None  # fewer than `n_envs` from one of several writers
    _updates_owed: float = 0.0

    @abstractmethod
    def explorer(self) -> Explorer:
        """What chooses the actions to collect with now; asked before every parallel step."""

    @abstractmethod
    def playing_weights(self) -> Mapping[str, Tensor]:
        """Those that the explorer of a collector elsewhere needs."""

    def explorer_elsewhere(self) -> Explorer:
        """As `explorer`, with a network of its own on the CPU that only plays, to be sent away."""
        with in_mode(self.policy, training=False):
            explorer = copy.deepcopy(self.explorer())
        explorer.network.cpu().requires_grad_(False)
        return explorer

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
                raise ValueError(
                    "ranks: need a TensorVecEnv, a TensorReplayBuffer and a train_freq in steps"
                )
            if any(hasattr(module, "running_mean") for module in self.policy.modules()):
                raise ValueError("ranks: exclude BatchNorm, which is about the batch of one rank")
            if getattr(self, "cuda_graphs", False):
                raise ValueError("ranks: cuda_graphs must be False")
        self.ranks = ranks
        ranks.copy_from_first(self.policy.state_dict().values())
        if ranks.rank > 0:
            self.set_random_seed(ranks.seed(self.seed))

    def _setup_learn(self, *args: Any, **kwargs: Any) -> tuple[int, BaseCallback]:
        buffer = self.replay_buffer
        if self.verbose >= 1 and isinstance(buffer, TensorReplayBuffer) and not buffer.is_allocated:
            print(buffer.memory_estimate())
        before = self._last_obs
        self.stop_requested = False
        total_timesteps, callback = super()._setup_learn(*args, **kwargs)
        if self._last_obs is not before:  # the environments were reset
            self.last_legal = None
            if isinstance(buffer, TensorReplayBuffer):
                buffer.cut()
        if self.collects_tensors:
            self._last_obs = to_device(self._last_obs, self.device)
        intervals = (self.log_interval_seconds, self.log_interval_updates)
        self.clock = LoopClock(self.num_timesteps, self.num_updates, *intervals)
        return total_timesteps, callback

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
            ValueError: A collector cannot fill this model's replay buffer.
        """
        if collector is not None and self.ranks.size > 1:
            raise ValueError("collector: one of several ranks plays its games itself")
        if collector is not None and not self.collects_tensors:
            raise ValueError(
                "collector: needs a TensorVecEnv, a TensorReplayBuffer and a train_freq in steps"
            )
        total_timesteps, callback = self._setup_learn(
            *(total_timesteps, callback, reset_num_timesteps),
            *(tb_log_name or type(self).__name__, progress_bar),
        )
        if log_interval is not None:
            self.clock.every_seconds, self.clock.every_updates = None, log_interval
        (after_learn,) = callback_hooks(callback, "after_learn")
        session = getattr(collector, "session", None)
        try:
            # Before the session, which may take its time, so that callbacks hear of signals.
            callback.on_training_start(locals(), globals())
            self.ranks.ready()
            with nullcontext(collector) if session is None else session(self) as self._collector:
                with in_mode(self.policy, training=False):
                    self._run(total_timesteps, callback)
                self.dump_logs()
                callback.on_training_end()
        finally:
            after_learn()
            self._collector = self._transitions_of_step = None
        return self

    def _run(self, total_timesteps: int, callback: BaseCallback) -> None:
        """Collect, update, log, until enough transitions were collected or a callback stops."""
        before_train, after_train = callback_hooks(callback, "before_train", "after_train")
        assert self.env is not None
        assert isinstance(self.train_freq, TrainFreq)
        assert self.replay_buffer is not None
        while self.num_timesteps < total_timesteps and not self.ranks.any(
            self.stop_requested or self.ranks.deserted
        ):
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
                with self.clock.seconds.timed("update"):
                    self.train(gradient_steps=gradient_steps, batch_size=self.batch_size)
                after_train()
            if self.clock.is_due(self.num_updates - self._logged_updates):
                self.dump_logs()

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
        assert isinstance(self.train_freq, TrainFreq)
        return self.gradient_steps * own / (self.train_freq.frequency * self.n_envs)

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
        with in_mode(self.policy, training=False):
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
        number = 0
        for played in self.play(env, steps):
            obs, actions, rewards, terminated, truncated, reached, legal, _ = played
            replay_buffer.add_batch(
                *(obs, reached, actions, rewards, terminated, truncated, legal),
                steps=None if rewards.dim() == 1 else len(rewards),
            )
            stored = self.num_timesteps + rewards.numel() * self.ranks.size
            for step in played.each():
                number += 1
                self._episode_sums.add(step.episode)
                if self.evaluation_rows and step.episode is not None:
                    first = self.n_envs - self.evaluation_rows
                    ended = {key: value[first:] for key, value in step.episode.items()}
                    self._evaluation_sums.add(ended)
                self._transitions_of_step = len(step.rewards) * self.ranks.size
                self.num_timesteps += self._transitions_of_step
                new_obs = self._last_obs if self._collector is None else step.next_observations
                callback.update_locals(
                    {
                        "actions": step.actions,
                        "dones": LazyArray(step.terminated | step.truncated),
                        "env": env,
                        "infos": LazyInfos(step),
                        "new_obs": new_obs,
                        "num_collected_steps": number,
                        "replay_buffer": replay_buffer,
                        "rewards": LazyArray(step.rewards),
                        "self": self,
                    }
                )
                if not callback.on_step():
                    if self.ranks.size == 1:
                        self.num_timesteps = stored
                        return RolloutReturn(stored - before, 0, continue_training=False)
                    self.request_stop()  # the other ranks play on, and then wait for this one
                self._update_current_progress_remaining(self.num_timesteps, self._total_timesteps)
                self._on_step()
        callback.on_rollout_end()
        return RolloutReturn(self.num_timesteps - before, 0, continue_training=True)

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
        if self._collector is not None:
            rate = self.explorer().exploration_rate
            self._collector.publish(self.num_updates, self.playing_weights(), rate)
            with self.clock.seconds.timed("environment"):
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
