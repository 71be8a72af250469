"""The state of a `VecEnv` with SB3's wrappers around it, where that can be had."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import (
    VecCheckNan,
    VecEnv,
    VecEnvWrapper,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)

from sb3_ext.adapter import TensorVecEnv

# What each of SB3's wrappers remembers.
_REMEMBERED: dict[type[VecEnv], tuple[str, ...]] = {
    VecCheckNan: (),
    VecMonitor: ("episode_count", "episode_lengths", "episode_returns"),
    VecNormalize: ("obs_rms", "ret_rms", "returns"),
    VecTransposeImage: (),
}


def _layers(env: VecEnv) -> list[VecEnv]:
    """The environment and what it wraps, outermost first."""
    return [env, *_layers(env.venv)] if isinstance(env, VecEnvWrapper) else [env]


def _places(layer: VecEnv) -> list[tuple[dict[str, Any], str]]:
    """Where a wrapper keeps what it remembers: a dictionary and a key of it for each value."""
    found = []
    for name in _REMEMBERED[type(layer)]:
        value = vars(layer).get(name)  # not getattr: a wrapper hands on what it lacks itself
        statistics = [*value.values()] if isinstance(value, dict) else [value]
        if isinstance(statistics[0], RunningMeanStd):
            found += [(vars(each), key) for each in statistics for key in ("mean", "var", "count")]
        elif name in vars(layer):
            found.append((vars(layer), name))
    return found


def vec_env_state(env: VecEnv) -> list[Any] | None:
    """The state of every layer, outermost first, as tensors, arrays and plain data.

    Returns:
        None if it cannot be had: the environment offers no `state_dict` (SB3's own, of single
        environments, do not), or a wrapper is of an unknown kind.
    """
    states: list[Any] = []
    for layer in _layers(env):
        if type(layer) in _REMEMBERED:
            states.append([owner[key] for owner, key in _places(layer)])
        elif isinstance(layer, TensorVecEnv) and layer.has_attr("state_dict"):
            states.append(layer.state_dict())
        else:
            return None
    return states


def load_vec_env_state(env: VecEnv, states: list[Any]) -> None:
    """Puts back what `vec_env_state` gave.

    Raises:
        ValueError, KeyError: there are other layers, or the environment says that its state does
            not fit.
    """
    # Innermost first: it is the one that checks the most.
    for layer, state in zip(reversed(_layers(env)), reversed(states), strict=True):
        if isinstance(layer, TensorVecEnv):
            layer.load_state_dict(state)
        else:
            for (owner, key), value in zip(_places(layer), state, strict=True):
                owner[key] = value
