"""What our off-policy algorithms consist of beside their loop; see `off_policy.py` for the list."""

from __future__ import annotations

import io
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import GymEnv, TrainFreq, TrainFrequencyUnit
from stable_baselines3.common.utils import safe_mean
from torch import Tensor

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.networks.observations import consists_of_tensors, to_arrays, to_device
from sb3_ext.off_policy.legality import LegalActions
from sb3_ext.off_policy.log import EpisodeSums, LoopClock, UpdateSums
from sb3_ext.off_policy.random_streams import RandomStreams
from sb3_ext.replay.buffers import TensorReplayBuffer

__all__ = ["OffPolicyModel"]

# Counters that a training state holds beside tensors; all of them plain numbers.
_COUNTERS = (
    "num_timesteps",
    "exploration_rate",
    "_current_progress_remaining",
    "_episode_num",
    "_finite_until_update",
    "_logged_updates",
    "_n_updates",
    "_updates_owed",
)


class OffPolicyModel(OffPolicyAlgorithm):
    """Building, seeding, logs, saving and resuming of an off-policy algorithm.

    A subclass sets the attributes below before it calls the constructor of SB3's algorithm.

    Attributes:
        mask_source: As in `LegalActions`.
        log_interval_seconds: Log when this many seconds have passed, None: never by time.
        log_interval_updates: Log when this many updates have passed, None: never by updates.
        update_sums: What updates measured since the last log; made by the subclass.
        random_streams: Source of everything random that is drawn here.
        clock: Speed of the running `learn`.
        stop_requested: See `request_stop`.
    """

    mask_source: str
    log_interval_seconds: float | None
    log_interval_updates: int | None
    update_sums: UpdateSums
    random_streams: RandomStreams
    clock: LoopClock

    stop_requested: bool = False

    _episode_sums: EpisodeSums
    _finite_until_update: int = 0
    _last_legal: Tensor | None = None
    _logged_updates: int = 0
    _saved_random_state: dict[str, Any] | None = None
    _updates_owed: float = 0.0

    # ------------------------------------------------------------------ building

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

    def _setup_learn(self, *args: Any, **kwargs: Any) -> tuple[int, BaseCallback]:
        buffer = self.replay_buffer
        if self.verbose >= 1 and isinstance(buffer, TensorReplayBuffer) and not buffer.is_allocated:
            print(buffer.memory_estimate())
        return super()._setup_learn(*args, **kwargs)

    def _find_legal_actions(self) -> None:
        """Settle who knows the legal actions, and make the replay buffer to match."""
        self.legal_actions = LegalActions(
            self.observation_space, self.action_space, self.env, self.mask_source
        )
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
            self.observation_space,
            self.action_space,
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
        """Seed what SB3 seeds, and our exploration, `predict` and replay sampling.

        Args:
            seed: None draws fresh entropy for our generators and leaves the others alone.
        """
        super().set_random_seed(seed)
        self.random_streams = RandomStreams(seed, self.device)
        if isinstance(self.replay_buffer, TensorReplayBuffer):
            self.replay_buffer.set_seed(self.random_streams.replay_seed)

    def _uses_tensors(self) -> bool:
        """Whether `learn` collects with tensors rather than with SB3's numpy loop."""
        # The environment itself: around it, a wrapper of SB3 wants its own step to be called.
        return (
            isinstance(self.env, TensorVecEnv)
            and hasattr(self.replay_buffer, "add_batch")
            and isinstance(self.train_freq, TrainFreq)
            and self.train_freq.unit == TrainFrequencyUnit.STEP
        )

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

        A callback that returns False ends it before them; a run that is resumed from there would
        be another one than the run that was not interrupted.
        """
        self.stop_requested = True

    # ------------------------------------------------------------------ logs

    def check_finite(self) -> None:
        """Wait for the device and make sure that every update so far had a finite loss.

        Raises:
            FloatingPointError: One had not; names the updates since the last check, or says that
                a reward was not finite.
        """
        if isinstance(self.replay_buffer, TensorReplayBuffer):
            self.replay_buffer.check_finite("rewards")
        if not self.update_sums.all_finite():
            first, last = self._finite_until_update + 1, self._n_updates
            raise FloatingPointError(
                f"train/loss or its gradient became NaN or infinite in updates {first} to {last};"
                " the weights are spoiled, go back to the last checkpoint and lower the learning"
                " rate or max_grad_norm"
            )
        self._finite_until_update = self._n_updates

    def dump_logs(self) -> None:
        """Write what happened since the last log; waits for the device once."""
        self.check_finite()
        for name, value in self.update_sums.read().items():
            self.logger.record(f"train/{name}", value)
        self.update_sums.clear()
        self._logged_updates = self._n_updates
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
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
        self.clock.record(self.logger, self.num_timesteps, self._n_updates)
        self.logger.dump(step=self.num_timesteps)

    # ------------------------------------------------------------------ saving and resuming

    def save(
        self,
        path: str | pathlib.Path | io.BufferedIOBase,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """As in SB3: weights, target, optimiser, counters and schedules, not the replay buffer.

        Raises:
            FloatingPointError: A loss was NaN or infinite since the last check; nothing is written.
        """
        self.check_finite()
        self._saved_random_state = self._random_state()
        try:
            super().save(path, exclude, include)
        finally:
            self._saved_random_state = None

    def _random_state(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            name: value.numpy() for name, value in self.random_streams.state_dict().items()
        }
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
        ours += ["_episode_sums", "_last_legal"]
        if consists_of_tensors(self._last_obs):
            ours.append("_last_obs")
        return [*super()._excluded_save_params(), *ours]

    def training_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What `learn` needs to go on exactly, beside the policy, its optimiser and the buffer.

        Returns:
            Named tensors (random state, last observation and its legal actions), and plain numbers
            (counters, clocks of the schedules) that JSON can hold.
        """
        tensors = {f"random.{k}": v for k, v in self.random_streams.state_dict().items()}
        if self._last_obs is not None:
            last = to_device(self._last_obs, self.device)
            last = last if isinstance(last, dict) else {"": last}
            tensors |= {f"last_obs.{key}": value for key, value in last.items()}
        if self._last_legal is not None:
            tensors["last_legal"] = self._last_legal
        counters = {name: getattr(self, name) for name in self._counters()}
        schedules = getattr(self, "bound_schedules", {})
        counters["schedules"] = {name: bound.state_dict() for name, bound in schedules.items()}
        return tensors, counters

    def load_training_state(
        self, tensors: Mapping[str, Tensor], counters: Mapping[str, Any]
    ) -> None:
        """Put back what `training_state` gave, into a model of the same arguments.

        The environment's own state is put back by whoever saved it. Continue with
        `learn(..., reset_num_timesteps=False)`.

        Raises:
            KeyError: Something is missing.
        """
        self.random_streams.load_state_dict(
            {name: tensors[f"random.{name}"] for name in ("explore", "predict")}
        )
        last = {
            name.removeprefix("last_obs."): value
            for name, value in tensors.items()
            if name.startswith("last_obs.")
        }
        if last:
            observation = to_device(last.get("", last), self.device)
            self._last_obs = observation if self._uses_tensors() else to_arrays(observation)
        legal = tensors.get("last_legal")
        self._last_legal = None if legal is None else legal.to(self.device)
        # Checkpoints of earlier versions do not say when a log was written last.
        counters = {"_logged_updates": counters["_n_updates"], **counters}
        for name in self._counters():
            setattr(self, name, counters[name])
        for name, bound in getattr(self, "bound_schedules", {}).items():
            bound.load_state_dict(counters["schedules"][name])

    def _counters(self) -> tuple[str, ...]:
        return _COUNTERS
