"""What a replay buffer returns, and the shapes of what it stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from sb3_ext.adapter.seam import Observation, each_entry


class TensorReplayBufferSamples(NamedTuple):
    """A batch of B transitions: the fields of SB3's `ReplayBufferSamples`, and some more.

    Attributes:
        observations: `[B, ...]` in the dtype of the space, or a dictionary of such.
        actions: `[B, action_dim]`, int64 for discrete actions.
        next_observations: After the last transition of the window; where an episode ended, its
            final observation.
        dones: `[B, 1]` float32, 1 where the window ended by termination: do not bootstrap.
        rewards: `[B, 1]` float32, the n-step return.
        discounts: `[B, 1]` float32, gamma^(transitions in the window), for the bootstrapped value.
            None if the buffer has no gamma; then use the algorithm's own.
        next_legal: `[B, A]` bool, legal actions at `next_observations`; None if not stored.
        weights: `[B]` float32, of each transition in the loss; None: 1 for all.
        indices: `[B]` int64, for `update_priorities`; None if the buffer has no priorities.
    """

    observations: Observation
    actions: Tensor
    next_observations: Observation
    dones: Tensor
    rewards: Tensor
    discounts: Tensor | None = None
    next_legal: Tensor | None = None
    weights: Tensor | None = None
    indices: Tensor | None = None


def example_of(shape: Any, space: spaces.Space) -> Tensor:
    """A tensor of this shape in the type of a space."""
    return torch.from_numpy(np.empty(shape, space.dtype))


def shaped(name: str, lead: tuple[int, ...], example: Tensor, value: Tensor) -> Tensor:
    """Values `[*lead, ...]`, one of them like the example, as `[T, N, ...]`."""
    need = (*lead, *example.shape)
    # SB3 passes [N] where a space has the shape [N, 1], and the other way round.
    if [size for size in value.shape if size != 1] != [size for size in need if size != 1]:
        raise ValueError(f"{name}: got shape {tuple(value.shape)}, need {need}")
    return value.reshape(-1, lead[-1], *example.shape)


def layout_of(lead: tuple[int, ...], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Shapes, which begin with `lead`, and dtypes."""
    return {
        name: each_entry(lambda x: ((*lead, *x.shape), x.dtype), value)
        for name, value in fields.items()
    }
