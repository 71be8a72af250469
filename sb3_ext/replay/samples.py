"""A batch of transitions."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from sb3_ext.adapter.observations import Observation


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
