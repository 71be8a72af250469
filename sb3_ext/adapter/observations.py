"""Observations that are one tensor or array, or a dictionary of such."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["consists_of_tensors", "to_arrays", "to_device"]


def consists_of_tensors(observation: Any) -> bool:
    """Whether all of an observation is torch tensors."""
    if isinstance(observation, dict):
        return all(isinstance(value, Tensor) for value in observation.values())
    return isinstance(observation, Tensor)


def to_device(observation: Any, device: torch.device) -> Any:
    """The observation as tensors on a device; what is there already is not copied."""
    if isinstance(observation, dict):
        return {key: torch.as_tensor(value, device=device) for key, value in observation.items()}
    return torch.as_tensor(observation, device=device)


def to_arrays(observation: Any) -> Any:
    """The observation as numpy arrays; other things than tensors stay as they are."""
    if isinstance(observation, dict):
        return {key: to_arrays(value) for key, value in observation.items()}
    return observation.cpu().numpy() if isinstance(observation, Tensor) else observation
