"""The state of a `VecEnv` with SB3's wrappers around it, where that can be had."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import (
    VecCheckNan,
    VecEnv,
    VecEnvWrapper,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)
from torch import Tensor

from sb3_ext.adapter import TensorVecEnv

# What each of SB3's wrappers remembers: the names in a state, and its own.
_REMEMBERED: dict[type[VecEnvWrapper], dict[str, str]] = {
    VecCheckNan: {},
    VecMonitor: {
        "count": "episode_count",
        "lengths": "episode_lengths",
        "returns": "episode_returns",
    },
    VecNormalize: {"observation": "obs_rms", "return": "ret_rms", "returns": "returns"},
    VecTransposeImage: {},
}


def _layers(env: VecEnv) -> list[VecEnv]:
    """The environment and what it wraps, outermost first."""
    return [env, *_layers(env.venv)] if isinstance(env, VecEnvWrapper) else [env]


def _remembered(layer: VecEnv) -> dict[str, str] | None:
    return next((names for kind, names in _REMEMBERED.items() if isinstance(layer, kind)), None)


def vec_env_state(env: VecEnv) -> list[Any] | None:
    """The state of every layer, outermost first, as tensors and plain data.

    Returns:
        None if it cannot be had: the environment offers no `state_dict` (SB3's own, of single
        environments, do not), or a wrapper is of an unknown kind.
    """
    states: list[Any] = []
    for layer in _layers(env):
        names = _remembered(layer)
        if names is not None:
            own = vars(layer)  # not getattr: a wrapper hands on what it lacks itself
            states.append({name: _saved(own.get(names[name])) for name in names})
        elif isinstance(layer, TensorVecEnv) and layer.has_attr("state_dict"):
            states.append(layer.state_dict())
        else:
            return None
    return states


def load_vec_env_state(env: VecEnv, states: list[Any]) -> None:
    """Puts back what `vec_env_state` gave.

    Raises:
        ValueError: there are other layers, or the environment says that its state does not fit.
    """
    layers = _layers(env)
    if len(layers) != len(states):
        raise ValueError(f"environment: {len(states)} layers were saved, {len(layers)} are here")
    # Innermost first: it is the one that checks the most.
    for layer, state in zip(reversed(layers), reversed(states), strict=True):
        try:
            if isinstance(layer, TensorVecEnv):
                layer.load_state_dict(state)
            for name, attribute in (_remembered(layer) or {}).items():
                if attribute in vars(layer):
                    setattr(layer, attribute, _loaded(vars(layer)[attribute], state[name]))
        except KeyError as error:
            raise ValueError(f"{type(layer).__name__}: {error} is missing") from error


def _saved(value: Any) -> Any:
    """Arrays as tensors, and running statistics as dictionaries of them."""
    if isinstance(value, RunningMeanStd):
        return {**_saved(vars(value)), "count": float(value.count)}
    if isinstance(value, dict):
        return {key: _saved(entry) for key, entry in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return torch.from_numpy(np.array(value))
    return value


def _loaded(own: Any, saved: Any) -> Any:
    """What `_saved` was given, in place of ``own``, whose statistics are changed."""
    if isinstance(own, RunningMeanStd):
        vars(own).update(_loaded(dict(vars(own)), saved))
        return own
    if isinstance(own, dict):
        return {key: _loaded(value, saved[key]) for key, value in own.items()}
    return saved.numpy().copy() if isinstance(saved, Tensor) else saved
