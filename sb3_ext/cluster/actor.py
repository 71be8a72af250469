"""What runs in an actor's process: the games of one chunk, and nothing to remember between two.

Games, weights and the place in the random streams come with every request and the games go back
with the chunk, so that whoever is asked gives the same answer, however often an actor was replaced.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from resgym.trust import import_modules
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.cluster.chunk import Chunk, ChunkWriter, as_tensors
from sb3_ext.config.checks import one_line
from sb3_ext.ddqn.collector import Explorer, TensorCollector
from sb3_ext.ddqn.legality import LegalActions


def vector_env_spec(env_id: str) -> EnvSpec:
    """What is registered in this process, for one where it may not be; ValueError if it is not."""
    try:
        return gymnasium.spec(env_id)
    except gymnasium.error.Error as error:
        raise ValueError(f"env: {one_line(error)}") from error


@dataclass(frozen=True)
class ActorPlan:
    """What all actors of a run are told.

    Attributes:
        env: What Gymnasium knows of a vector environment, or a function of `num_envs` and arguments
            that makes one.
        games: Rows N of the environment.
        chunk: Parallel steps T of a chunk.
        seed: Of all random streams; games of actor i are seeded from `seed + i * games` on.
        explorer: Chooses the actions, on the CPU.
        mask_source: As in `LegalActions`.
        observation_space: What the learner's replay buffer stores.
        action_space: Likewise.
        modules: Imported first, so that what they register has names.
    """

    env: EnvSpec | Callable[..., Any]
    games: int
    chunk: int
    seed: int
    explorer: Explorer
    mask_source: str
    observation_space: spaces.Space
    action_space: spaces.Space
    modules: tuple[str, ...] = ()


class Actor:
    """Plays chunks of one environment's games.

    Args:
        number: Of the actor, from 0.
        generation: How often it has been replaced.
        plan: See there.
        env_kwargs: Arguments of the environment.
    """

    def __init__(
        self, number: int, generation: int, plan: ActorPlan, env_kwargs: Mapping[str, Any]
    ) -> None:
        self.number, self.generation, self.plan = number, generation, plan
        self.env_kwargs = dict(env_kwargs)
        self._collector: TensorCollector | None = None

    def start(self) -> int:
        """Make the environment, and check that its steps fit the learner; the process's id.

        Raises:
            ValueError: They do not, or games of it cannot be saved.
        """
        torch.set_num_threads(1)
        plan = self.plan
        import_modules(plan.modules)
        make = partial(gymnasium.make_vec, plan.env) if isinstance(plan.env, EnvSpec) else plan.env
        env = make(num_envs=plan.games, **self.env_kwargs)
        adapted = TensorVecEnv(env)
        for name in ("observation_space", "action_space"):
            given, need = getattr(adapted, name), getattr(plan, name)
            if given != need:
                raise ValueError(f"{name} is {given}, the model has {need}")
        if not adapted.has_attr("load_state_dict"):
            raise ValueError("the environment has no state_dict and load_state_dict")
        legal = LegalActions(plan.observation_space, plan.action_space, adapted, plan.mask_source)
        self._collector = TensorCollector(adapted, plan.explorer, legal, torch.Generator())
        self._collector.version = -1
        return os.getpid()

    def collect(
        self,
        sequence: int,
        version: int,
        weights: Mapping[str, np.ndarray],
        exploration_rate: float | None,
        games: Mapping[str, Any] | None,
    ) -> tuple[Chunk, dict[str, Any]]:
        """Play the next chunk, and say where the games stand then.

        The same arguments give the same chunk.

        Args:
            sequence: Number of the chunk.
            version: Of the weights, one number for the same weights.
            weights: That the explorer takes, as arrays.
            exploration_rate: As in `Explorer`.
            games: What the chunk before gave; None starts new games.
        """
        began = time.perf_counter()
        if self._collector is None:
            self.start()
        collector, plan = self._collector, self.plan
        assert collector is not None
        if version != collector.version:
            collector.publish(version, as_tensors(dict(weights)), exploration_rate)
        collector.explorer.exploration_rate = exploration_rate
        words = np.random.SeedSequence((plan.seed, self.number, sequence)).generate_state(1, "u8")
        collector.generator = torch.Generator().manual_seed(int(words[0] >> np.uint64(1)))
        if games is None:
            collector.env.seed(plan.seed + self.number * plan.games)
            collector.observation = collector.legal = None
        else:
            collector.env.load_state_dict(games["environment"])
            collector.observation, collector.legal = games["observation"], games["legal"]
        writer = ChunkWriter(plan.chunk)
        for _ in range(plan.chunk):
            writer.add(collector.step())
        environment = collector.env.state_dict()
        after = {
            "environment": environment,
            "observation": collector.observation,
            "legal": collector.legal,
        }
        chunk = writer.finish(
            collector.observation,
            actor=self.number,
            generation=self.generation,
            sequence=sequence,
            version=version,
            seconds=time.perf_counter() - began,
        )
        return chunk, after
