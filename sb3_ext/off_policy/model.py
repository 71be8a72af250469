"""How an off-policy model is built, what it logs, and how it is saved."""

from __future__ import annotations

import io
import pathlib
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.utils import safe_mean
from torch import Tensor

from sb3_ext.adapter.observations import entries_of
from sb3_ext.adapter.sb3_private import OBSERVATIONS
from sb3_ext.off_policy.legality import LegalActions
from sb3_ext.off_policy.log import EpisodeSums, LoopClock, UpdateSums
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.runs.ranks import ALONE, Ranks


class RandomStreams:
    """Generators for exploration and for `predict`, and a seed for replay sampling.

    They are independent of each other and of the global generators. Without a seed, a non-negative
    integer, they take fresh entropy.
    """

    def __init__(self, seed: int | None, device: torch.device) -> None:
        words = np.random.SeedSequence(seed).generate_state(3, np.uint64) >> np.uint64(1)
        self.explore = torch.Generator(device).manual_seed(int(words[0]))
        self.predict = torch.Generator(device).manual_seed(int(words[1]))
        self.replay_seed = int(words[2])

    def state_dict(self) -> dict[str, Tensor]:
        """The generators' states as byte tensors on the CPU."""
        return {"explore": self.explore.get_state(), "predict": self.predict.get_state()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on where `state_dict` was taken; on another kind of device the streams begin anew."""
        for name in ("explore", "predict"):
            generator: torch.Generator = getattr(self, name)
            if state[name].shape == generator.get_state().shape:
                generator.set_state(state[name].cpu())


class OffPolicyModel(OffPolicyAlgorithm):
    """What `OffPolicy` is without its loop.

    Attributes:
        mask_source: As in `LegalActions`.
        update_sums: What updates measured since the last log.
        last_legal: Legal actions at the last observation, if the environment was asked for them.
        own_counters: Names of the numbers that a resumed run needs beside those of SB3.
        collector_state: Where a collector with a memory stood when the last `learn` with it ended,
            or in the checkpoint that was put back; None if there was none.
        evaluation_rows: Of the environment's rows so many, the last ones, do not explore.
        ranks: The processes that learn together. `num_timesteps`, and all that counts in
            transitions, is the sum over them; `n_envs`, `batch_size` and the buffer are of one.
    """

    mask_source: str
    update_sums: UpdateSums
    random_streams: RandomStreams
    clock: LoopClock

    last_legal: Tensor | None = None
    own_counters: tuple[str, ...] = ("_finite_until_update", "_logged_updates", "_updates_owed")

    collector_state: dict[str, Any] | None = None
    ranks: Ranks = ALONE

    evaluation_rows: int = 0

    _collector: Any = None  # a `Collector`, while `learn` has been given one
    _episode_sums: EpisodeSums
    _evaluation_sums: EpisodeSums
    _finite_until_update: int = 0
    _fitting: bool = False  # to a buffer: no transitions are collected
    _logged_updates: int = 0
    _saved_random_state: dict[str, Any] | None = None

    @property
    def num_updates(self) -> int:
        """Gradient updates made so far."""
        return int(self._n_updates)

    def _setup_model(self) -> None:
        if self.replay_buffer_class is None:
            self.replay_buffer_class = TensorReplayBuffer
        self._find_legal_actions()
        if self.env is not None and self.evaluation_rows > self.n_envs:
            rows = f"{self.evaluation_rows}, the environment has {self.n_envs} rows"
            raise ValueError(f"evaluation_rows: got {rows}")
        with warnings.catch_warnings():
            # About the rounding of the interval in transitions, which `_on_step` does not do.
            warnings.filterwarnings("ignore", "The number of environments used is greater")
            if isinstance(self.replay_buffer, TensorReplayBuffer):  # it was told
                warnings.filterwarnings("ignore", "`n_steps=.*` is ignored")
            super()._setup_model()
        self._episode_sums, self._evaluation_sums = EpisodeSums(), EpisodeSums()
        if (saved := self._saved_random_state) is not None:
            streams = self.random_streams.state_dict()
            self.random_streams.load_state_dict(
                {name: torch.from_numpy(saved[name].copy()) for name in streams}
            )

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
        count, returns, lengths = self._evaluation_sums.take()
        if count:
            self.logger.record("rollout/evaluation_ep_rew_mean", returns / count)
            self.logger.record("rollout/evaluation_ep_len_mean", lengths / count)
        self.logger.record("rollout/episodes", self._episode_num)
        if self.ep_success_buffer:
            self.logger.record("rollout/success_rate", safe_mean(self.ep_success_buffer))
        counted = dict(getattr(self._collector, "statistics", {}))
        for number, actor in enumerate(counted.pop("actors", ())):  # too many for people
            for name, value in actor.items():
                hidden = ("stdout", "log", "tensorboard")
                self.logger.record(f"collector/actor_{number}/{name}", value, exclude=hidden)
        for name, value in counted.items():
            if isinstance(value, (int, float)):
                self.logger.record(f"collector/{name}", value)
        self.clock.record(self.logger, self.num_timesteps, self.num_updates)
        self.logger.dump(step=self.num_updates if self._fitting else self.num_timesteps)

    def log_state(self) -> dict[str, Any]:
        """The sums for the next log, for a checkpoint."""
        episodes, updates = self._episode_sums.state_dict(), self.update_sums.state_dict()
        evaluation = self._evaluation_sums.state_dict()
        more = {"evaluation": evaluation} if evaluation else {}
        return {"episodes": episodes, "updates": updates, **more}

    def current_collector_state(self) -> dict[str, Any] | None:
        """That of the collector in use, or else `collector_state`, for a checkpoint."""
        if hasattr(self._collector, "state_dict"):
            return self._collector.state_dict()  # type: ignore[no-any-return]
        return self.collector_state

    def load_log_state(self, state: Mapping[str, Any]) -> None:
        """Go on where `log_state` was taken."""
        self._episode_sums.load_state_dict(state["episodes"], self.device)
        self._evaluation_sums.load_state_dict(state.get("evaluation", {}), self.device)
        self.update_sums.load_state_dict(state["updates"])

    def save(
        self,
        path: str | pathlib.Path | io.BufferedIOBase,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """As in SB3, without the replay buffer; FloatingPointError if `check_finite` raises."""
        self.check_finite()
        streams = self.random_streams.state_dict()
        self._saved_random_state = {name: value.numpy() for name, value in streams.items()}
        super().save(path, exclude, include)

    def _excluded_save_params(self) -> list[str]:
        ours = ["clock", "legal_actions", "random_streams", "update_sums"]
        ours += ["_collector", "_episode_sums", "_transitions_of_step", "collector_state", "ranks"]
        ours += ["last_legal", "_evaluation_sums", "_fitting"]
        if all(isinstance(value, Tensor) for value in entries_of(self._last_obs).values()):
            ours.append(OBSERVATIONS[0])
        return [*super()._excluded_save_params(), *ours]
