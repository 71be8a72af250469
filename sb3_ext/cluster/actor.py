"""What runs in an actor's process: the games of one chunk, and nothing to remember between two.

A chunk is T parallel steps of N games, sent as one `ParallelStep` of NumPy arrays.

Games, weights and the place in the random streams come with every request and the games go back
with the chunk, so that every process gives the same answer, however often an actor was replaced.
"""

from __future__ import annotations

import operator
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.utils import check_for_correct_spaces

from resgym.trust import import_modules, unpacked
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.seam import each_entry
from sb3_ext.config.checks import one_line
from sb3_ext.ddqn.collector import Explorer, ParallelStep, TensorCollector
from sb3_ext.ddqn.legality import LegalActions
from sb3_ext.types import Arguments, StateDict


def vector_env_maker(env_id: str) -> Callable[..., Any]:
    """What makes a registered environment in any process; ValueError if it is unknown."""
    try:
        return partial(gymnasium.make_vec, gymnasium.spec(env_id))
    except gymnasium.error.Error as error:
        raise ValueError(f"env: {one_line(error)}") from error


@dataclass(frozen=True)
class ActorPlan:
    """What all actors of a run are told.

    Attributes:
        env: A function of `num_envs` and arguments that makes a vector environment.
        games: Rows N of the environment.
        chunk: Parallel steps T of a chunk.
        seed: Seed of all random streams; games of actor i are seeded from `seed + i * games` on.
        explorer: Chooses the actions, on the CPU.
        mask_source: As in `LegalActions`.
        observation_space: What the learner's replay buffer stores.
        action_space: Likewise.
        modules: Imported first, so that what they register has names.
    """

    env: Callable[..., Any]
    games: int
    chunk: int
    seed: int
    explorer: Explorer
    mask_source: str
    observation_space: spaces.Space
    action_space: spaces.Space
    modules: tuple[str, ...] = ()


class Actor:
    """Plays chunks of one environment's games, of whichever actor it is asked for.

    Args:
        plan: See there.
        env_kwargs: Arguments of the environment.

    Raises:
        ValueError: Its steps do not fit the learner, or its games cannot be saved.
    """

    def __init__(self, plan: ActorPlan, env_kwargs: Arguments) -> None:
        torch.set_num_threads(1)
        import_modules(plan.modules)
        self.plan = plan
        env = TensorVecEnv(plan.env(num_envs=plan.games, **env_kwargs))
        check_for_correct_spaces(env, plan.observation_space, plan.action_space)
        if not env.has_attr("load_state_dict"):
            raise ValueError("the environment has no state_dict and load_state_dict")
        legal = LegalActions(plan.observation_space, plan.action_space, env, plan.mask_source)
        self._collector = TensorCollector(env, plan.explorer, legal, torch.Generator())

    def collect(
        self,
        number: int,
        sequence: int,
        version: int,
        weights: Mapping[str, np.ndarray],
        exploration_rate: float | None,
        games: StateDict | None,
    ) -> tuple[Chunk, StateDict]:
        """Play the next chunk of an actor, and say where its games stand then.

        The same arguments give the same chunk.

        Args:
            number: Index of the actor, from 0.
            sequence: Number of the chunk.
            version: Number of the weights, the same for equal ones.
            weights: That the explorer takes, as arrays.
            exploration_rate: As in `Explorer`.
            games: What the chunk before gave; None starts new games.
        """
        began = time.perf_counter()
        collector = self._collector
        plan = self.plan
        collector.publish(version, as_tensors(dict(weights)), exploration_rate)
        words = np.random.SeedSequence((plan.seed, number, sequence)).generate_state(1, "u8")
        collector.generator = torch.Generator().manual_seed(int(words[0] >> np.uint64(1)))
        if games is None:
            collector.env.seed(plan.seed + number * plan.games)
            collector.observation = collector.legal = None
        else:
            collector.env.load_state_dict(games["environment"])
            collector.observation = games["observation"]
            collector.legal = games["legal"]
        steps = stack_steps(collector.step() for _ in range(plan.chunk))
        return Chunk(number, sequence, version, time.perf_counter() - began, steps), {
            "environment": collector.env.state_dict(),
            "observation": collector.observation,
            "legal": collector.legal,
        }


@lru_cache(maxsize=16)
def _actor_of(packed: bytes) -> Any:
    return unpacked(packed)()


def play_chunk(packed: bytes, *asked: Any) -> tuple[Chunk, StateDict]:
    """A chunk, in a process of the cluster; `packed` makes the `Actor`."""
    answer: tuple[Chunk, StateDict] = _actor_of(packed).collect(*asked)
    return answer


@dataclass
class Chunk:
    """T parallel steps of N games, and who collected them when.

    Attributes:
        actor: Number of the actor.
        sequence: Number of the chunk among those of its actor.
        version: Updates that had made the weights which played.
        seconds: What collecting took.
        steps: Arrays `[T, N, ...]`; `episode` is there, with zeros where none ended.
    """

    actor: int
    sequence: int
    version: int
    seconds: float
    steps: ParallelStep


def stack_steps(steps: Iterable[ParallelStep]) -> ParallelStep:
    """Return T >= 1 successive steps of the same N games as copies in arrays `[T, N, ...]`."""
    copies = [_copied(step.as_arrays()) for step in steps]
    return ParallelStep._make(
        None if values[0] is None else each_entry(lambda *arrays: np.stack(arrays), *values)
        for values in zip(*copies, strict=True)
    )


def _copied(step: ParallelStep) -> ParallelStep:
    ended = step.terminated | step.truncated
    sums = step.episode or {"r": np.zeros(len(ended), "f4"), "l": np.zeros(len(ended), "i8")}
    episode = {"ended": ended, "r": sums["r"] * ended, "l": sums["l"] * ended}
    return step._replace(episode=episode)._each(partial(each_entry, np.copy))


def blocks(steps: ParallelStep, rows: int) -> Iterator[ParallelStep]:
    """Yield all T steps of the first `rows` games as tensors, then those of the next games.

    `rows` divides N.
    """
    tensors = steps._each(as_tensors)
    for first in range(0, steps.actions.shape[1], rows):
        take_games = operator.itemgetter((slice(None), slice(first, first + rows)))
        yield tensors._each(partial(each_entry, take_games))


def as_tensors(value: Any) -> Any:
    """Return arrays, or entries that are arrays, as read-only tensors of the same memory."""
    with warnings.catch_warnings():
        # What came through the object store can only be read.
        warnings.filterwarnings("ignore", "The given NumPy array is not writ")
        return each_entry(torch.from_numpy, value)
