"""Collecting experience: what plays the games that an algorithm learns from.

`learn` collects in its own process with a `TensorCollector` that plays the networks being trained.
`learn(..., collector=...)` takes any other `Collector`: it is told the weights by `publish`, and
hands over parallel steps whose values may be NumPy arrays, so it can stand for processes elsewhere,
each of which can run a `TensorCollector`: docs/ddqn.md has an example.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.observations import each_entry, to_arrays, to_device
from sb3_ext.off_policy.legality import LegalActions


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
        episode: If any row ended: `ended` `[M]` bool, returns `r` and lengths `l` of those rows.
    """

    observations: Any
    actions: Any
    rewards: Any
    terminated: Any
    truncated: Any
    next_observations: Any
    next_legal: Any = None
    episode: dict[str, Any] | None = None

    def as_arrays(self) -> ParallelStep:
        """The same in NumPy arrays, to be sent to another process."""
        return self._replace(**{name: to_arrays(value) for name, value in self._asdict().items()})

    def each(self) -> Iterator[ParallelStep]:
        """One transition of each row after the other."""
        if self.rewards.ndim == 1:
            yield self
            return
        for number in range(len(self.rewards)):
            cut = (None if x is None else each_entry(itemgetter(number), x) for x in self)
            yield ParallelStep._make(cut)

    def on(self, device: torch.device) -> ParallelStep:
        """The same in tensors on a device; what is there already is not copied."""
        return ParallelStep._make(None if x is None else to_device(x, device) for x in self)


class Explorer(Protocol):
    """Chooses actions to collect with."""

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Play with these from now on."""

    network: nn.Module
    """What is asked for action values."""

    exploration_rate: float | None
    """Probability of a random action; None: all are random, and the network is not asked."""

    def __call__(
        self, observation: Any, legal: Tensor | None, generator: torch.Generator
    ) -> Tensor:
        """Actions `[M]` int64 at tensors `[M, ...]`, with legal actions `[M, A]` bool or None."""


class Collector(Protocol):
    """What `learn` can be given instead of its own environment.

    One that has to be started and stopped also has `session(model)`, a context manager around the
    whole `learn`. It gives the collector to use, or None for the model's own environment. What a
    run needs to go on with such a collector is its `state_dict()`; a checkpoint keeps it, and
    `session` finds it as `model.collector_state`. Numbers in `statistics` are logged.
    """

    def collect(self, num_steps: int) -> Iterable[ParallelStep]:
        """Play so many parallel steps of all rows of the model.

        Who collects in larger pieces may give all steps of one, also as one `ParallelStep` of all
        of them, which is stored at once. A step is done with when the next one is taken.
        """

    def publish(
        self, version: int, weights: Mapping[str, Tensor], exploration_rate: float | None
    ) -> None:
        """Play with other weights from now on, which change in place with the next update.

        `version` is the number of updates that made them; `exploration_rate` as in `Explorer`.
        """


class TensorCollector:
    """Plays the rows of one environment.

    `generator` is the source of everything random, on the explorer's device.

    Attributes:
        observation: What the environment shows now, on its device; None before the first reset.
        legal: Legal actions there, if the environment is asked for them and was.
        version: Of the weights that play.
        seconds: Spent in the environment.
    """

    def __init__(
        self,
        env: TensorVecEnv,
        explorer: Explorer,
        legal_actions: LegalActions,
        generator: torch.Generator,
    ) -> None:
        self.env, self.explorer, self.legal_actions = env, explorer, legal_actions
        self.generator = generator
        self.observation: Any = None
        self.legal: Tensor | None = None
        self.version = 0
        self.seconds = 0.0

    def publish(
        self, version: int, weights: Mapping[str, Tensor], exploration_rate: float | None
    ) -> None:
        """See `Collector`."""
        self.explorer.load_weights(weights)
        self.explorer.exploration_rate = exploration_rate
        self.version = version

    def collect(self, num_steps: int) -> list[ParallelStep]:
        """See `Collector`."""
        return [self.step() for _ in range(num_steps)]

    def step(self) -> ParallelStep:
        """One parallel step."""
        if self.observation is None:
            self.observation = self.env.reset_tensors()
        before, device = self.observation, self.generator.device
        legal = self.legal_actions.now(before, self.env, device, self.legal)
        actions = self.explorer(before, legal, self.generator)
        started = time.perf_counter()
        observation, rewards, terminated, truncated, info = self.env.step_tensors(actions)
        reached, episode = self.env.reached(observation, info), None
        if "episode" in info:
            episode = {"ended": info["_episode"], **info["episode"]}
        self.seconds += time.perf_counter() - started
        self.legal, next_legal = self.legal_actions.after(self.env, device, terminated | truncated)
        self.observation = to_device(observation, device)
        return ParallelStep(
            before,
            actions,
            rewards,
            terminated,
            truncated,
            reached,
            next_legal,
            episode,
        )
