"""What `learn` needs to go on exactly, beside policy, optimiser, buffer and games."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from torch import Tensor

from sb3_ext.adapter.sb3_private import (
    COUNTERS,
    STOCK_COUNTERS,
    last_observations,
    set_last_observations,
)

__all__ = ["load_training_state", "training_state"]

_STREAMS = ("explore", "predict")


def _counters(model: Any) -> list[str]:
    own = getattr(model, "own_counters", None)
    names = STOCK_COUNTERS if own is None else (*COUNTERS, *own)
    return [name for name in names if hasattr(model, name)]


def training_state(model: BaseAlgorithm) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state of our algorithms and of SB3's, which draw random actions from their action space.

    Returns:
        Named tensors (random streams, last observation and its legal actions), and plain data
        (counters, clocks of the schedules) that JSON can hold.
    """
    tensors = last_observations(model)
    ours: Any = model
    if hasattr(model, "random_streams"):
        streams = ours.random_streams.state_dict()
        tensors |= {f"random.{name}": value for name, value in streams.items()}
        if ours.last_legal is not None:
            tensors["last_legal"] = ours.last_legal
    values = {name: getattr(model, name) for name in _counters(model)}
    counters: dict[str, Any] = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in values.items()
    }
    if not hasattr(model, "random_streams"):
        counters["action_space"] = model.action_space.np_random.bit_generator.state
    schedules = getattr(model, "bound_schedules", {})
    counters["schedules"] = {name: bound.state_dict() for name, bound in schedules.items()}
    return tensors, counters


def load_training_state(
    model: BaseAlgorithm, tensors: Mapping[str, Tensor], counters: Mapping[str, Any]
) -> None:
    """Puts back what `training_state` gave, into a model of the same arguments.

    The environment's own state is put back by whoever saved it. Continue with
    `learn(..., reset_num_timesteps=False)`.

    Raises:
        KeyError: something is missing.
    """
    # Earlier checkpoints of our algorithms have it without the underscore.
    tensors = {
        f"_{name}" if name.startswith("last_obs.") else name: tensors[name] for name in tensors
    }
    ours: Any = model
    set_last_observations(model, tensors, as_tensors=getattr(model, "collects_tensors", False))
    if hasattr(model, "random_streams"):
        ours.random_streams.load_state_dict({name: tensors[f"random.{name}"] for name in _STREAMS})
        legal = tensors.get("last_legal")
        ours.last_legal = None if legal is None else legal.to(model.device)
    else:
        model.action_space.np_random.bit_generator.state = counters["action_space"]
    # Checkpoints of earlier versions do not say when a log was written last.
    counters = {"_logged_updates": 0, **counters}
    for name in _counters(model):
        setattr(model, name, counters[name])
    for name, bound in getattr(model, "bound_schedules", {}).items():
        bound.load_state_dict(counters["schedules"][name])
