"""What `learn` needs to go on exactly, beside policy, buffer and games, as plain data."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from torch import Tensor
from torch.optim import Optimizer

from sb3_ext.adapter.sb3_private import (
    COUNTERS,
    STOCK_COUNTERS,
    last_observations,
    set_last_observations,
)


def _counters(model: Any) -> list[str]:
    own = getattr(model, "own_counters", None)
    names = STOCK_COUNTERS if own is None else (*COUNTERS, *own)
    return [name for name in names if hasattr(model, name)]


def training_state(model: BaseAlgorithm) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state of our algorithms and of SB3's, which draw random actions from their action space.

    Returns:
        Named tensors (random streams, last observation and its legal actions), and plain data
        (counters).
    """
    tensors = last_observations(model)
    ours: Any = model
    counters = {name: getattr(model, name) for name in _counters(model)}
    if hasattr(model, "random_streams"):
        streams = ours.random_streams.state_dict()
        tensors |= {f"random.{name}": value for name, value in streams.items()}
        if ours.last_legal is not None:
            tensors["last_legal"] = ours.last_legal
    else:
        counters["action_space"] = model.action_space.np_random.bit_generator.state
    return tensors, counters


def load_training_state(
    model: BaseAlgorithm, tensors: Mapping[str, Any], counters: Mapping[str, Any]
) -> None:
    """Puts back what `training_state` gave, into a model of the same arguments.

    The environment's own state is put back by whoever saved it. Continue with
    `learn(..., reset_num_timesteps=False)`.

    Raises:
        KeyError: something is missing.
    """
    ours: Any = model
    set_last_observations(model, tensors)
    if hasattr(model, "random_streams"):
        streams = {name: tensors[f"random.{name}"] for name in ours.random_streams.state_dict()}
        ours.random_streams.load_state_dict(streams)
        legal = tensors.get("last_legal")
        ours.last_legal = None if legal is None else legal.to(model.device)
    else:
        model.action_space.np_random.bit_generator.state = counters["action_space"]
    for name in _counters(model):
        setattr(model, name, counters[name])


def optimizer_state(optimizer: Optimizer) -> dict[str, Any]:
    """An optimiser's state; a learning rate on a device becomes a number."""
    state = optimizer.state_dict()
    groups = [
        {name: float(value) if isinstance(value, Tensor) else value for name, value in each.items()}
        for each in state["param_groups"]
    ]
    return {**state, "param_groups": groups}


def load_optimizer_state(optimizer: Optimizer, state: Mapping[str, Any]) -> None:
    """Puts back what `optimizer_state` gave into an optimiser of the same parameters.

    Raises:
        ValueError, KeyError: it had other groups of parameters or settings.
    """
    for group, own in zip(state["param_groups"], optimizer.param_groups, strict=False):
        if group.keys() != own.keys():
            raise ValueError(f"param_groups: got {sorted(group)}, need {sorted(own)}")
    optimizer.load_state_dict(dict(state))


def global_random_state() -> dict[str, Any]:
    """The generators of Python, NumPy and PyTorch (CUDA's too, if it is in use)."""
    return {
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        "numpy": np.random.get_state(),
        "python": random.getstate(),
        "torch": torch.get_rng_state(),
    }


def load_global_random_state(state: Mapping[str, Any]) -> None:
    """Puts back what `global_random_state` gave; CUDA's where there are as many devices."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"].cpu())
    if state["cuda"] and len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([each.cpu() for each in state["cuda"]])
