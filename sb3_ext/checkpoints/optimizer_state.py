"""The state of an optimiser as tensors and plain data, for checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

__all__ = ["load_optimizer_state", "optimizer_state"]


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
    sizes = [len(group["params"]) for group in groups]
    if sizes != [len(group["params"]) for group in own_groups]:
        raise ValueError(f"groups: of {sizes} parameters, the model has other ones")
    for group, own in zip(groups, own_groups, strict=True):
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
