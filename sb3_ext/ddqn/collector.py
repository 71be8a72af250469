"""Collectors: they play the games that an algorithm learns from.

By default `learn` collects in its own process with a `TensorCollector` and the network being
trained. `learn(..., collector=...)` takes any other `Collector`. It receives the weights by
`publish` and returns parallel steps as tensors or NumPy arrays, so it can represent other processes
that run a `TensorCollector`; docs/ddqn.md has an example.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize
from torch import Tensor, nn

from sb3_ext.adapter import TensorVecEnv, reached_observation
from sb3_ext.adapter.seam import each_entry, entries_of, first_entry, to_arrays, to_device
from sb3_ext.ddqn.legality import STRATEGIES, LegalActions, legal_argmax
from sb3_ext.networks.mlp import action_values
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.types import Info


class ParallelStep(NamedTuple):
    """One transition of each of M rows, or T of each; tensors, or NumPy arrays.

    With T transitions everything has one axis more in front, of T.

    Attributes:
        observations: Acted on, `[M, ...]` or a dictionary of such.
        actions: `[M]` int64.
        rewards: `[M]` float32.
        terminated: `[M]` bool.
        truncated: `[M]` bool.
        next_observations: Reached; where an episode ended, its final observation.
        next_legal: Legal actions there, `[M, A]` bool, if the environment was asked for them.
        episode: If any row ended: `ended` `[M]` bool, and of those rows returns `r`, lengths `l`
            and `is_success` (NaN: unknown), if the environment says it.
    """

    observations: Any
    actions: Any
    rewards: Any
    terminated: Any
    truncated: Any
    next_observations: Any
    next_legal: Any = None
    episode: Info | None = None

    def _each(self, function: Callable[[Any], Any]) -> ParallelStep:
        return ParallelStep._make(x if x is None else function(x) for x in self)

    def as_arrays(self) -> ParallelStep:
        """The same in NumPy arrays, to be sent to another process."""
        return self._each(to_arrays)

    def on(self, device: torch.device) -> ParallelStep:
        """The same in tensors on a device; data already there is not copied."""
        return self._each(lambda x: to_device(x, device))

    def each(self) -> Iterator[ParallelStep]:
        """One transition of each row after the other."""
        if self.rewards.ndim == 1:
            yield self
            return
        for number in range(len(self.rewards)):
            yield self._each(partial(each_entry, operator.itemgetter(number)))


@dataclass
class Explorer:
    """Choose legal actions with exploration, independently in every row.

    Args:
        network: From observations of M rows to action values `[M, A]`, in evaluation mode.
        num_actions: A.
        strategy: One of `targets.STRATEGIES`.
        evaluation: (K, N): the last K of each N rows do not explore.
        bfloat16: Whether the network uses bfloat16.
        exploration_rate: Probability or temperature; None: all actions are random.
    """

    network: nn.Module
    num_actions: int
    strategy: str = "epsilon_greedy"
    evaluation: tuple[int, int] = (0, 1)
    bfloat16: bool = False
    exploration_rate: float | None = None

    @torch.no_grad()
    def __call__(
        self, observation: Any, legal: Tensor | None, generator: torch.Generator
    ) -> Tensor:
        """Actions `[M]` int64 at tensors `[M, ...]`, with legal actions `[M, A]` bool or None."""
        few, many = self.evaluation
        rate = self.exploration_rate
        if rate is None:
            shape, device = (len(first_entry(observation)), self.num_actions), generator.device
            noise = torch.rand(shape, generator=generator, device=device)
            chosen = legal_argmax(noise, legal)  # uniform among the legal ones
            if not few:
                return chosen
        values = action_values(self.network, observation, self.bfloat16)
        if rate is not None:
            chosen = STRATEGIES[self.strategy](values, legal, rate, generator)
        if few:
            row = torch.arange(len(values), device=values.device) % many
            chosen = torch.where(row >= many - few, legal_argmax(values, legal), chosen)
        return chosen


class Collector(Protocol):
    """A replacement of the model's own environment in `learn`.

    A collector that must be started and stopped also has `session(model)`, a context manager around
    `learn`. It yields the collector to use, or None for the model's own environment. A checkpoint
    keeps its `state_dict()`, and `session` finds it as `model.collector_state`. Numbers in
    `statistics` are logged.
    """

    def collect(self, num_steps: int) -> Iterable[ParallelStep]:
        """Play this many parallel steps of all rows of the model.

        Who collects in larger pieces may give all steps of one, also as one `ParallelStep` of all
        of them, which is stored at once. A step is done with when the next one is taken.
        """

    def publish(
        self, version: int, weights: Mapping[str, Tensor], exploration_rate: float | None
    ) -> None:
        """Play with other weights from now on, which change in place with the next update.

        `version` is the number of updates that made them; `exploration_rate` as in `Explorer`.
        """


@dataclass
class TensorCollector:
    """Plays the rows of one environment, a `TensorVecEnv` without leaving its device.

    Args:
        env: The environment.
        explorer: Chooses the actions.
        legal_actions: Which of them are legal.
        generator: Source of everything random, on the explorer's device.
        observation: What the environment shows now, on its device; None before the first reset.
        original: The same below a `VecNormalize`, to be stored; None without one.
        legal: Legal actions there, if the environment is asked for them and was.
        infos: Gives the infos of the last step.
        version: Number of the weights that play.
        seconds: Spent in the environment.
    """

    env: Any
    explorer: Explorer
    legal_actions: LegalActions
    generator: torch.Generator
    observation: Any = None
    original: Any = None
    legal: Tensor | None = None
    infos: Any = None
    version: int = 0
    seconds: float = 0.0

    def publish(
        self, version: int, weights: Mapping[str, Tensor], exploration_rate: float | None
    ) -> None:
        """See `Collector`."""
        self.explorer.network.load_state_dict(weights)
        self.explorer.exploration_rate = exploration_rate
        self.version = version

    def collect(self, num_steps: int) -> list[ParallelStep]:
        """See `Collector`."""
        return [self.step() for _ in range(num_steps)]

    def step(self) -> ParallelStep:
        """One parallel step."""
        env = self.env
        device = self.generator.device
        if self.observation is None:
            self.observation = to_device(env.reset(), device)
        before = self.observation if self.original is None else self.original
        legal = self.legal_actions.now(self.observation, env, device, self.legal)
        actions = self.explorer(self.observation, legal, self.generator)
        started = time.perf_counter()
        play = self._play_tensors if isinstance(env, TensorVecEnv) else self._play_arrays
        shown, rewards, terminated, truncated, reached, episode = play(env, actions)
        self.seconds += time.perf_counter() - started
        self.legal, next_legal = self.legal_actions.after(env, device, terminated | truncated)
        self.observation = to_device(shown, device)
        return ParallelStep(
            before, actions, rewards, terminated, truncated, reached, next_legal, episode
        )

    def _play_arrays(self, env: VecEnv, actions: Tensor) -> tuple[Any, ...]:
        """One step of any environment of SB3, whose arrays become tensors on the device."""
        results = env.step(actions.cpu().numpy())
        # Copied, as the environment may write its next results into the same memory.
        shown, rewards, dones = (each_entry(np.array, each) for each in results[:3])
        infos = results[3]
        self.infos = lambda: infos
        reached, normalizer = shown, unwrap_vec_normalize(env)
        if normalizer is not None:
            reached, rewards = normalizer.get_original_obs(), normalizer.get_original_reward()
            self.original = to_device(reached, self.generator.device)
        reached = each_entry(np.copy, reached)
        for row in np.flatnonzero(dones):
            final = infos[row]["terminal_observation"]
            if normalizer is not None:
                final = normalizer.unnormalize_obs(final)
            for key, values in entries_of(reached).items():
                values[row] = entries_of(final)[key]
        cut = np.array([bool(info.get("TimeLimit.truncated")) for info in infos])
        episode = {"ended": np.array(["episode" in info for info in infos])}
        merged = [{**info, **info.get("episode", {})} for info in infos]
        for key in ("r", "l", "is_success"):
            episode[key] = np.array([info.get(key, np.nan) for info in merged], np.float32)
        found = (shown, rewards, dones & ~cut, dones & cut, reached, episode)
        return tuple(to_device(x, self.generator.device) for x in found)

    def _play_tensors(self, env: TensorVecEnv, actions: Tensor) -> tuple[Any, ...]:
        shown, rewards, terminated, truncated, info = env.step_tensors(actions)
        self.infos = cache(env.infos)
        episode = None
        if "episode" in info:
            episode = {"ended": info["_episode"], **info["episode"]}
            if isinstance(found := info.get("is_success"), Tensor):
                said = info["_is_success" if "_is_success" in info else "_episode"]
                episode["is_success"] = torch.where(said, found, torch.nan)
        # A promise of the environment itself: a wrapper may change some rows alone.
        whole = "final_obs" in info and getattr(type(env.venv), "final_obs_of_all_rows", False)
        reached = info["final_obs"] if whole else reached_observation(shown, info)
        return shown, rewards, terminated, truncated, reached, episode


class Locals(dict[str, Any]):
    """The `locals` of callbacks: tensors are seen as arrays, as those of SB3's are.

    They and the infos are made when looked up: in every step this would cost more than the step.
    The arrays cannot be written to, as the step has been stored before.
    """

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if name == "infos":
            return value()
        return each_entry(_seen, value) if name in _TENSORS else value

    def __reduce__(self) -> Any:
        """A copy begins without: what is here belongs to the original's last step."""
        return Locals, ()

    get = Mapping.get  # type: ignore[assignment]  # a dictionary's own does not ask for the above


_TENSORS = ("actions", "buffer_actions", "dones", "new_obs", "rewards")


def _seen(value: Any) -> Any:
    array = np.array(to_arrays(value))
    array.flags.writeable = False
    return array


def infos_from(given: ParallelStep) -> list[Info]:
    """Return the info dictionaries of one parallel step, with the entries that SB3 reads.

    A row that ended has `terminal_observation`, `TimeLimit.truncated` and, if the step has them,
    `episode` (`r` its return, `l` its length) and `is_success`. The others are empty.
    """
    step = given.as_arrays()
    infos: list[Info] = [{} for _ in step.rewards]
    for row in np.flatnonzero(step.terminated | step.truncated).tolist():
        take = operator.itemgetter(row)
        infos[row] = {
            "TimeLimit.truncated": not step.terminated[row],
            "terminal_observation": each_entry(take, step.next_observations),
        }
        if step.episode is not None:
            episode = {key: take(values).item() for key, values in step.episode.items()}
            infos[row]["episode"] = {key: episode[key] for key in ("r", "l")}
            if "is_success" in episode:
                infos[row]["is_success"] = episode["is_success"]
    return infos


def store(played: ParallelStep, buffer: Any, infos: Any = None) -> None:
    """Store steps in a `TensorReplayBuffer`, or in one of SB3, which takes arrays and infos."""
    if isinstance(buffer, TensorReplayBuffer):
        obs, actions, rewards, terminated, truncated, reached, legal = played[:7]
        steps = None if rewards.dim() == 1 else len(rewards)
        buffer.add_batch(obs, reached, actions, rewards, terminated, truncated, legal, steps=steps)
        return
    for step in played.each():
        obs, actions, rewards, terminated, truncated, reached = step.as_arrays()[:6]
        told = infos or partial(infos_from, step)
        buffer.add(obs, reached, actions, rewards, terminated | truncated, told())
