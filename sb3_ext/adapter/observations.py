"""Observations of all rows as tensors, and as the numpy values that stable-baselines3 reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

Observation = Tensor | dict[str, Tensor]


def entries_of(observation: Any) -> dict[str, Any]:
    """The entries of a dictionary observation; any other is one entry, named ``""``."""
    return observation if isinstance(observation, dict) else {"": observation}


def each_entry(function: Callable[..., Any], observation: Any, *others: Any) -> Any:
    """Apply a function to observations, or to the entries of each name in all of them."""
    if not isinstance(observation, dict):
        return function(observation, *others)
    return {
        key: function(value, *(other[key] for other in others))
        for key, value in observation.items()
    }


def to_device(observation: Any, device: torch.device) -> Any:
    """The observation as tensors on a device; data already there is not copied."""
    return each_entry(partial(torch.as_tensor, device=device), observation)


def to_arrays(observation: Any) -> Any:
    """Return the observation as numpy arrays; only tensors are converted."""
    return each_entry(lambda x: x.cpu().numpy() if isinstance(x, Tensor) else x, observation)


def to_numpy(observation: Observation, space: spaces.Space) -> Any:
    """Return a numpy copy in the dtype of the space; later steps do not change it.

    Raises:
        TypeError: The observation does not consist of tensors.
    """
    if isinstance(observation, dict) and isinstance(space, spaces.Dict):
        return {key: to_numpy(value, space[key]) for key, value in observation.items()}
    if not isinstance(observation, Tensor):
        raise TypeError(
            f"observation: got {type(observation).__name__}; expected torch tensors (for numpy"
            " arrays use SB3's DummyVecEnv)"
        )
    return np.array(observation.detach().cpu().numpy(), dtype=space.dtype)


def reached_observation(next_observation: Observation, info: Mapping[str, Any]) -> Observation:
    """Return the observations that a step reached, before any reset, to learn from.

    Args:
        next_observation: Observation that `step` returned, `[N, ...]` or a dictionary of such.
        info: Info of the same step, with `final_obs` and its mask `_final_obs` if a row ended.

    Returns:
        `final_obs` in rows that ended, `next_observation` in the others.
    """
    if "final_obs" not in info:
        return next_observation
    ended = info["_final_obs"]

    def select(shown: Tensor, final: Tensor) -> Tensor:
        return torch.where(ended.reshape(-1, *[1] * (shown.dim() - 1)), final, shown)

    return each_entry(select, next_observation, info["final_obs"])  # type: ignore[no-any-return]


def rows_of(value: Any, num_envs: int, indices: Iterable[int]) -> list[Any]:
    """One value per row, for SB3's `get_attr` and `env_method`.

    Tensors and arrays of shape `[N, ...]` and tuples of length N are taken as one entry per row,
    tensors as numpy; anything else belongs to all rows.
    """
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy().copy()
    per_row = isinstance(value, tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)
    per_row = per_row and len(value) == num_envs
    return [value[index] if per_row else value for index in indices]
