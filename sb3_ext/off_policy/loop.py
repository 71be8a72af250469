"""The one seam between our algorithms and stable-baselines3's off-policy ones (SB3 2.9.2).

Every method of SB3 that `TensorOffPolicy` replaces, and why:

    OffPolicyAlgorithm._setup_model       a TensorReplayBuffer by default, with legal masks
    OffPolicyAlgorithm._setup_learn       keeps the observation on the device, starts the clock,
                                          says how much memory the replay buffer will take
    OffPolicyAlgorithm.learn              number of updates, hooks, logs by time
    OffPolicyAlgorithm.collect_rollouts   a loop of tensors without a look at a single row
    OffPolicyAlgorithm._sample_action     one exploration rule for both loops
    OffPolicyAlgorithm._store_transition  legal masks of the environment (numpy loop)
    OffPolicyAlgorithm.dump_logs          reads the sums kept on the device, checks for NaN
    BaseAlgorithm.set_env                 finds out again who knows the legal actions
    BaseAlgorithm.set_random_seed         seeds our generators and the replay buffer too
    BaseAlgorithm.save                    refuses a model spoiled by a NaN, keeps random state
    BaseAlgorithm._excluded_save_params   leaves out what lives on a device

Those about the loop are here, the others in `off_policy_model.py`.

`sb3_ext.ddqn.ddqn` lists what it replaces of `DQN`. The tensor loop runs when the environment is a
`TensorVecEnv` and the buffer offers `add_batch`; otherwise SB3's own numpy loop runs with the same
exploration.

The tensor loop stores a transition before the callbacks see the step; SB3 stores it after. So a
callback that saves or stops finds buffer, counters and environment at the same step.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

import numpy as np
import torch
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import MaybeCallback, RolloutReturn, TrainFreq
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from sb3_ext.networks.observations import to_device
from sb3_ext.off_policy.callback_locals import LazyArray, LazyInfos
from sb3_ext.off_policy.log import LoopClock, callback_hooks
from sb3_ext.off_policy.model import OffPolicyModel

__all__ = ["TensorOffPolicy"]

Self = TypeVar("Self", bound="TensorOffPolicy")


class TensorOffPolicy(OffPolicyModel):
    """The loop of an off-policy algorithm over tensors. See the module for what it replaces.

    A subclass provides `_explore` and `train`, and adds what every update measured to
    `update_sums`.

    Attributes:
        replay_ratio: How many transitions are sampled for updates per transition collected; None:
            `gradient_steps` updates after every `train_freq` parallel steps.
    """

    replay_ratio: float | None

    @abstractmethod
    def _explore(self, observation: Any, legal: Tensor | None) -> Tensor:
        """Actions `[N]` to collect with, on the device; explores in every row by itself.

        Args:
            observation: Tensors on the model's device, `[N, ...]` or a dictionary of such.
            legal: Legal actions `[N, A]` bool, or None.
        """

    def _setup_learn(self, *args: Any, **kwargs: Any) -> tuple[int, BaseCallback]:
        before = self._last_obs
        self.stop_requested = False
        total_timesteps, callback = super()._setup_learn(*args, **kwargs)
        if self._last_obs is not before:  # the environments were reset
            self._last_legal = None
        if self._uses_tensors():
            self._last_obs = to_device(self._last_obs, self.device)
        self.clock = LoopClock(
            self.num_timesteps,
            self._n_updates,
            self.log_interval_seconds,
            self.log_interval_updates,
            self._logged_updates,
        )
        return total_timesteps, callback

    def learn(  # type: ignore[override]
        self: Self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = None,
        tb_log_name: str = "run",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Collect and update until `total_timesteps` transitions were collected.

        Args:
            total_timesteps: Transitions; a lower bound, since a parallel step makes `n_envs`.
            callback: As in SB3. A callback with methods `before_train()` and `after_train()` has
                them called around every block of updates.
            log_interval: Updates between two logs (SB3: episodes); replaces the constructor's
                intervals for this call.
            tb_log_name: Name of the run for TensorBoard.
            reset_num_timesteps: False continues counters and environments of the last call.
            progress_bar: Show a progress bar (needs tqdm and rich).

        Raises:
            FloatingPointError: A loss or gradient became NaN or infinite. Noticed when logs are
                due, at `save` and at the end.
        """
        total_timesteps, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        if log_interval is not None:
            self.clock.every_seconds, self.clock.every_updates = None, log_interval
        callback.on_training_start(locals(), globals())
        with self.training_mode(False):
            self._run(total_timesteps, callback)
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
            if self.clock.is_due(self._n_updates):
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
            if self._uses_tensors():
                return self._collect_tensors(env, callback, train_freq.frequency, replay_buffer)
            return super().collect_rollouts(
                env, callback, train_freq, replay_buffer, None, learning_starts, None
            )

    def _collect_tensors(
        self, env: Any, callback: BaseCallback, steps: int, replay_buffer: Any
    ) -> RolloutReturn:
        callback.on_rollout_start()
        for step in range(1, steps + 1):
            obs = self._last_obs
            actions = self._explore(obs, self._legal_now(obs))
            with self.clock.timed("environment"):
                new_obs, rewards, terminated, truncated, info = env.step_tensors(actions)
            reached = env.reached(new_obs, info)
            dones = terminated | truncated
            next_legal = self._legal_next(dones)
            replay_buffer.add_batch(
                obs, reached, actions, rewards, terminated, truncated, next_legal
            )
            self._episode_sums.add(info)
            self._last_obs = to_device(new_obs, self.device)
            self.num_timesteps += env.num_envs
            callback.update_locals(
                {
                    "actions": actions,
                    "dones": LazyArray(dones),
                    "env": env,
                    "infos": LazyInfos(terminated, truncated, info),
                    "new_obs": new_obs,
                    "num_collected_steps": step,
                    "replay_buffer": replay_buffer,
                    "rewards": LazyArray(rewards),
                    "self": self,
                }
            )
            if not callback.on_step():
                return RolloutReturn(step * env.num_envs, 0, continue_training=False)
            self._update_current_progress_remaining(self.num_timesteps, self._total_timesteps)
            self._on_step()
        callback.on_rollout_end()
        return RolloutReturn(steps * env.num_envs, 0, continue_training=True)

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        assert self._last_obs is not None
        obs = self.policy.obs_to_tensor(self._last_obs)[0]
        action = self._explore(obs, self._legal_now(obs)).cpu().numpy()
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
        if self.legal_actions.source == "environment":
            next_legal = self._legal_next(torch.as_tensor(dones, device=self.device))
            replay_buffer = _AddsMask(replay_buffer, next_legal)
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)

    def _legal_now(self, observation: Any) -> Tensor | None:
        if self.legal_actions.source != "environment":
            return self.legal_actions.of_observation(observation)
        if self._last_legal is None:
            self._last_legal = self.legal_actions.of_environment(self.env, self.device)
        return self._last_legal

    def _legal_next(self, dones: Tensor) -> Tensor | None:
        """Mask to store with the transition just made, from an environment that knows it.

        Where an episode ended, the environment already shows the next one. The mask of the final
        observation is unknown then, and every action counts as legal there.
        """
        self._last_legal = self.legal_actions.of_environment(self.env, self.device)
        if self._last_legal is None:
            return None
        return self._last_legal | dones.to(self.device)[:, None]


class _AddsMask:
    """Lets SB3's numpy loop store a legal mask with its transition."""

    def __init__(self, replay_buffer: Any, next_legal: Tensor | None) -> None:
        self._replay_buffer, self._next_legal = replay_buffer, next_legal

    def add(self, *transition: Any) -> None:
        self._replay_buffer.add(*transition, self._next_legal)
