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


def training_state(model: BaseAlgorithm) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state of our algorithms and of SB3's, which draw random actions from their action space.

    Returns:
        Named tensors (random streams, last observation and its legal actions), and plain data
        (counters) that JSON can hold.
    """
    tensors = last_observations(model)
    ours: Any = model
    values = {name: getattr(model, name) for name in _counters(model)}
    counters: dict[str, Any] = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in values.items()
    }
    if hasattr(model, "random_streams"):
        streams = ours.random_streams.state_dict()
        tensors |= {f"random.{name}": value for name, value in streams.items()}
        if ours.last_legal is not None:
            tensors["last_legal"] = ours.last_legal
    else:
        counters["action_space"] = model.action_space.np_random.bit_generator.state
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
    ours: Any = model
    set_last_observations(model, tensors, as_tensors=getattr(model, "collects_tensors", False))
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
    """An optimiser's state with strings as keys; a learning rate on a device becomes a number."""
    data = optimizer.state_dict()
    groups = [
        {name: float(value) if isinstance(value, Tensor) else value for name, value in each.items()}
        for each in data["param_groups"]
    ]
    return {
        "groups": groups,
        "moments": {str(number): dict(values) for number, values in data["state"].items()},
    }


def load_optimizer_state(optimizer: Optimizer, state: Mapping[str, Any]) -> None:
    """Puts back what `optimizer_state` gave into an optimiser of the same parameters.

    Raises:
        ValueError: it had other parameters or settings; names the first that differs.
    """
    own_groups = optimizer.state_dict()["param_groups"]
    groups = [dict(group) for group in state["groups"]]
    for group, own in zip(groups, own_groups, strict=False):  # torch compares their numbers
        if group.keys() != own.keys():
            raise ValueError(f"groups: got settings {sorted(group)}, need {sorted(own)}")
        for name, value in own.items():
            if isinstance(value, tuple):  # a file knows only lists
                group[name] = tuple(group[name])
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    moments = {int(number): values for number, values in state["moments"].items()}
    for number, values in moments.items():
        if not 0 <= number < len(parameters):
            raise ValueError(f"moments/{number}: there are {len(parameters)} parameters")
        for name, value in values.items():
            allowed = (torch.Size(), parameters[number].shape)
            if isinstance(value, Tensor) and value.shape not in allowed:
                raise ValueError(
                    f"moments/{number}/{name}: got shape {tuple(value.shape)}, need"
                    f" {tuple(parameters[number].shape)}"
                )
    optimizer.load_state_dict({"param_groups": groups, "state": moments})


def global_random_state() -> dict[str, Any]:
    """The generators of Python, NumPy and PyTorch (CUDA's too, if it is in use)."""
    version, words, gauss = random.getstate()
    numpy_state: Any = np.random.get_state(legacy=False)
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return {
        "cuda": cuda,
        "numpy": {
            "cached": float(numpy_state["gauss"]),
            "has_cached": int(numpy_state["has_gauss"]),
            "position": int(numpy_state["state"]["pos"]),
            "words": torch.from_numpy(numpy_state["state"]["key"].astype(np.int64)),
        },
        "python": {"gauss": gauss, "version": version, "words": torch.tensor(words)},
        "torch": torch.get_rng_state(),
    }


def load_global_random_state(state: Mapping[str, Any]) -> None:
    """Puts back what `global_random_state` gave; CUDA's where there are as many devices."""
    python, numpy_state = state["python"], state["numpy"]
    random.setstate((python["version"], tuple(python["words"].tolist()), python["gauss"]))
    words = numpy_state["words"].numpy().astype(np.uint32)
    rest = (numpy_state[name] for name in ("position", "has_cached", "cached"))
    np.random.set_state(("MT19937", words, *rest))
    torch.set_rng_state(state["torch"].cpu())
    if state["cuda"] and len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([each.cpu() for each in state["cuda"]])
