"""What is played of a role's games elsewhere, and how it becomes the learner's experience."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from torch import Tensor

from sb3_ext.adapter.observations import each_entry, entries_of
from sb3_ext.adapter.sb3_private import last_observation, taking_actions
from sb3_ext.cluster.chunk import Chunk
from sb3_ext.ddqn.collector import ParallelStep


@dataclass
class Elsewhere:
    """The games of a role that are played elsewhere, by piece, and the rollouts so far."""

    played: int = 0
    games: list[Any] = field(default_factory=list)


def playing_weights(policy: Any) -> dict[str, Tensor]:
    """Those of a policy without its target network."""
    weights = policy.state_dict()
    return {name: value for name, value in weights.items() if "_target." not in name}


def bench_of(policy: Any) -> Any:
    """A copy of a policy that plays, and never learns."""
    bench = copy.deepcopy(policy)
    bench.optimizer = None
    bench.requires_grad_(False).set_training_mode(False)
    return bench


class Given:
    """A `Collector` that has the steps of one chunk."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk

    def publish(self, *_: Any) -> None:
        """It has been played already."""

    def collect(self, num_steps: int) -> Iterator[ParallelStep]:
        """See `Collector`."""
        return self.chunk.steps(self.chunk.actions.shape[1])


class _Recording(VecEnvWrapper):
    """Keeps actions, observations, rewards, ends and infos of all steps."""

    def __init__(self, env: VecEnv) -> None:
        super().__init__(env)
        self.steps: list[tuple[Any, ...]] = []

    def reset(self) -> Any:
        return self.venv.reset()

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        new_obs, rewards, dones, infos = self.venv.step_wait()
        # SB3 adds to the rewards of games that were cut.
        self.steps.append((self._actions, new_obs, rewards.copy(), dones, infos))
        return new_obs, rewards, dones, infos


class _Replaying(VecEnvWrapper):
    """Shows what was recorded, whatever is done."""

    def __init__(self, env: VecEnv, steps: Sequence[tuple[Any, ...]]) -> None:
        super().__init__(env)
        self._steps = iter(steps)

    def reset(self) -> Any:
        raise AssertionError("what was recorded begins where it began")

    def step_async(self, actions: np.ndarray) -> None:
        pass

    def step_wait(self) -> Any:
        return next(self._steps)[1:]


def record_steps(model: Any, env: VecEnv, collect: Callable[[VecEnv], object]) -> dict[str, Any]:
    """The steps that a stock algorithm makes, and what was shown before the first."""
    first, recording = last_observation(model), _Recording(env)
    collect(recording)
    return {"first": first, "steps": recording.steps}


def joined_steps(parts: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The steps of some parts of a role's rows as those of all rows."""
    joined = []
    for step in zip(*(part["steps"] for part in parts), strict=True):
        *arrays, infos = zip(*step, strict=True)
        joined.append(
            (*(_stacked(each) for each in arrays), [each for some in infos for each in some])
        )
    return joined


@contextmanager
def replaying(model: Any, env: VecEnv, parts: Sequence[dict[str, Any]]) -> Iterator[VecEnv]:
    """An environment in which a stock off-policy algorithm collects what was recorded."""
    steps = joined_steps(parts)
    first = _stacked([part["first"] for part in parts])
    with taking_actions(model, iter([actions for actions, *_ in steps]), first):
        yield _Replaying(env, steps)


def buffer_arrays(buffer: Any) -> dict[str, Any]:
    """All that a rollout buffer holds of its steps and rows, by name."""
    shape = (buffer.buffer_size, buffer.n_envs)
    return {
        name: value
        for name, value in vars(buffer).items()
        if all(
            isinstance(each, np.ndarray) and each.shape[:2] == shape
            for each in entries_of(value).values()
        )
    }


def _stacked(values: Sequence[Any]) -> Any:
    return each_entry(lambda *arrays: np.concatenate(arrays), *values)
