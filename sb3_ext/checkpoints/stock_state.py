"""The training state of SB3's own algorithms: what `OffPolicyModel` offers itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from torch import Tensor

from sb3_ext.networks.observations import to_arrays, to_device

__all__ = [
    "load_observations",
    "load_stock_training_state",
    "observation_tensors",
    "stock_training_state",
]

# Those that a model has; `_n_calls` counts the steps between two target updates of DQN.
_COUNTERS = (
    "_current_progress_remaining",
    "_episode_num",
    "_n_calls",
    "_n_updates",
    "_num_timesteps_at_start",
    "_total_timesteps",
    "exploration_rate",
    "num_timesteps",
)
# What an on-policy algorithm goes on from, beside the observation, is where episodes start.
_OBSERVATIONS = ("_last_obs", "_last_original_obs", "_last_episode_starts")


def observation_tensors(model: BaseAlgorithm, *names: str) -> dict[str, Tensor]:
    """Attributes that hold an observation, as tensors named ``<attribute>.<key>``."""
    tensors: dict[str, Tensor] = {}
    for name in names:
        observation = getattr(model, name)
        if observation is not None:
            value = to_device(observation, model.device)
            entries = value if isinstance(value, dict) else {"": value}
            tensors |= {f"{name}.{key}": entry for key, entry in entries.items()}
    return tensors


def load_observations(model: BaseAlgorithm, tensors: Mapping[str, Tensor], *names: str) -> None:
    """Sets attributes from `observation_tensors` to NumPy arrays, or to None without any."""
    for name in names:
        entries = {
            key.removeprefix(f"{name}."): value
            for key, value in tensors.items()
            if key.startswith(f"{name}.")
        }
        setattr(model, name, to_arrays(entries.get("", entries)) if entries else None)


def stock_training_state(model: BaseAlgorithm) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Named tensors and plain data, as `OffPolicyModel.training_state` gives them."""
    counters: dict[str, Any] = {
        name: _plain(getattr(model, name)) for name in _COUNTERS if hasattr(model, name)
    }
    # Random actions before learning_starts come from the space's own generator.
    counters["action_space"] = model.action_space.np_random.bit_generator.state
    schedules = getattr(model, "bound_schedules", {})
    counters["schedules"] = {name: bound.state_dict() for name, bound in schedules.items()}
    return observation_tensors(model, *_OBSERVATIONS), counters


def load_stock_training_state(
    model: BaseAlgorithm, tensors: Mapping[str, Tensor], counters: Mapping[str, Any]
) -> None:
    """Puts back what `stock_training_state` gave.

    Raises:
        KeyError: something is missing.
    """
    load_observations(model, tensors, *_OBSERVATIONS)
    for name in _COUNTERS:
        if hasattr(model, name):
            setattr(model, name, counters[name])
    model.action_space.np_random.bit_generator.state = counters["action_space"]
    for name, bound in getattr(model, "bound_schedules", {}).items():
        bound.load_state_dict(counters["schedules"][name])


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
