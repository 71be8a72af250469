"""The state of a `VecEnv` with SB3's wrappers around it, where that can be had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.vec_env import (
    VecCheckNan,
    VecEnv,
    VecEnvWrapper,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)

from sb3_ext.adapter import TensorVecEnv

__all__ = ["load_vec_env_state", "vec_env_state"]

_STATELESS = (VecCheckNan, VecTransposeImage)


def _layers(env: VecEnv) -> list[VecEnv]:
    """The environment and what it wraps, outermost first."""
    return [env, *_layers(env.venv)] if isinstance(env, VecEnvWrapper) else [env]


def vec_env_state(env: VecEnv) -> list[Any] | None:
    """The state of every layer, outermost first, as tensors and plain data.

    Returns:
        None if it cannot be had: the environment offers no `state_dict` (SB3's own, of single
        environments, do not), or a wrapper is of an unknown kind.
    """
    states: list[Any] = []
    for layer in _layers(env):
        if isinstance(layer, TensorVecEnv):
            if not layer.has_attr("state_dict"):
                return None
            states.append(layer.state_dict())
        elif isinstance(layer, VecNormalize):
            states.append(
                {
                    "observation": _moments(layer.obs_rms) if layer.norm_obs else None,
                    "return": _moments(layer.ret_rms),
                    "returns": torch.from_numpy(np.array(layer.returns)),
                }
            )
        elif isinstance(layer, VecMonitor):
            states.append(
                {
                    "count": int(layer.episode_count),
                    "lengths": torch.from_numpy(layer.episode_lengths.copy()),
                    "returns": torch.from_numpy(layer.episode_returns.copy()),
                }
            )
        elif isinstance(layer, _STATELESS):
            states.append({})
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
            elif isinstance(layer, VecNormalize):
                if layer.norm_obs:
                    _load_moments(layer.obs_rms, state["observation"])
                _load_moments(layer.ret_rms, state["return"])
                layer.returns = state["returns"].numpy().copy()
            elif isinstance(layer, VecMonitor):
                layer.episode_count = state["count"]
                layer.episode_lengths = state["lengths"].numpy().copy()
                layer.episode_returns = state["returns"].numpy().copy()
        except KeyError as error:
            raise ValueError(f"{type(layer).__name__}: {error} is missing") from error


def _moments(values: Any) -> dict[str, Any]:
    """Of a RunningMeanStd, or of a dictionary of these."""
    if isinstance(values, dict):
        return {key: _moments(value) for key, value in values.items()}
    return {
        "count": float(values.count),
        "mean": torch.from_numpy(np.array(values.mean)),
        "var": torch.from_numpy(np.array(values.var)),
    }


def _load_moments(values: Any, state: Mapping[str, Any]) -> None:
    if isinstance(values, dict):
        for key, value in values.items():
            _load_moments(value, state[key])
    else:
        values.count = state["count"]
        values.mean = state["mean"].numpy().copy()
        values.var = state["var"].numpy().copy()
