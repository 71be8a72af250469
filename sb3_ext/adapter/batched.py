"""One batched environment in place of many single ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.wrappers import HumanRendering, OrderEnforcing, PassiveEnvChecker, TimeLimit
from stable_baselines3.common.monitor import Monitor

# Wrappers that gymnasium.make and SB3's make_vec_env put on by themselves. The batched
# environment does their work: it checks its input, keeps its time limit, counts its episodes.
_REPLACED = (HumanRendering, Monitor, OrderEnforcing, PassiveEnvChecker, TimeLimit)


def batched_env(
    env_fns: Sequence[Callable[[], gymnasium.Env]], **kwargs: Any
) -> tuple[VectorEnv, Monitor | None]:
    """Make one vector environment of `len(env_fns)` rows like the environment of the first one.

    The first function is called once to learn the environment's specification (all must make the
    same one), then `gymnasium.make_vec` makes the batched one with the same keyword arguments, time
    limit, and `kwargs`.

    Returns:
        The environment; and the `Monitor` of the single environment, if there is one.

    Raises:
        ValueError: There are no functions, or no batched environment of tensors can be made.
    """
    env = env_fns[0]()
    env.close()
    *wrappers, innermost = layers_of(env)
    spec = copy.deepcopy(innermost.spec)
    limits = [each._max_episode_steps for each in wrappers if isinstance(each, TimeLimit)]
    foreign = [each for each in wrappers if not isinstance(each, _REPLACED)]
    if spec is None:
        raise ValueError(f"env_fns: {innermost} is not registered with Gymnasium")
    if spec.vector_entry_point is None:
        raise ValueError(f"env_fns: {spec.id} has no vector_entry_point; use SB3's DummyVecEnv")
    if foreign:
        wrapper = type(foreign[0]).__name__
        raise ValueError(f"env_wrapper: {wrapper} cannot be put on the batched {spec.id}")
    if limits:
        kwargs.setdefault("max_episode_steps", min(limits))
    batched = gymnasium.make_vec(
        spec, num_envs=len(env_fns), vectorization_mode="vector_entry_point", **kwargs
    )
    return batched, next((each for each in wrappers if isinstance(each, Monitor)), None)


def layers_of(env: Any) -> Iterator[Any]:
    """An environment and what it wraps, single or batched, outermost first."""
    yield env
    while isinstance(env, (gymnasium.Wrapper, VectorWrapper)):
        env = env.env
        yield env
