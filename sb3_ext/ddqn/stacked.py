"""Action values of plain networks without autograd: flat observations, ReLU layers, plain head."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from torch import Tensor, nn

from sb3_ext.common.extractors import FlattenExtractor, flatten_entries
from sb3_ext.common.relu_stack import ReluStack, has_hooks, stacked_layers
from sb3_ext.ddqn.policies import LegalQNetwork

__all__ = ["StackedNetwork", "stacked_network"]


class StackedNetwork:
    """Calls a network as the network itself does, without gradients.

    Args:
        network: whose extractor only flattens.
        layers: the rest of it.
    """

    def __init__(self, network: LegalQNetwork, layers: list[nn.Linear]) -> None:
        self.network = network
        self.stack = ReluStack(layers)
        assert isinstance(network.features_extractor, FlattenExtractor)
        self._keys = network.features_extractor.keys

    def __call__(self, observation: Any, keep: bool = False) -> Tensor:
        """Action values `[B, A]`, new; `keep` remembers what `backward` needs."""
        return self.stack(flatten_entries(observation, self._keys), keep)

    def backward(self, gradient: Tensor) -> Tensor:
        """Sets the gradients of all weights from that of the action values, `[B, A]`.

        Returns:
            The gradients as one vector.
        """
        return self.stack.backward(gradient)

    def is_of(self, network: nn.Module, layers: list[nn.Linear]) -> bool:
        """Whether it was made of these."""
        mine = self.stack.layers
        return (
            network is self.network
            and len(mine) == len(layers)
            and all(one is other for one, other in zip(mine, layers, strict=True))
        )


def stacked_network(
    network: nn.Module, before: StackedNetwork | None = None
) -> StackedNetwork | None:
    """The faster way to call a network, or None if there is none that gives the same.

    Args:
        network: an action-value network.
        before: what this function returned last; its memory is used again if nothing changed.
    """
    if type(network) is not LegalQNetwork or has_hooks(network):
        return None
    extractor = network.features_extractor
    if type(extractor) is not FlattenExtractor or len(extractor.network) or has_hooks(extractor):
        return None
    if before is None and not _only_flattened(network.observation_space):
        return None
    layers = stacked_layers(network.q_net)
    if layers is None:
        return None
    if before is not None and before.is_of(network, layers):
        return before
    return StackedNetwork(network, layers)


def _only_flattened(space: spaces.Space[Any]) -> bool:
    """Whether SB3 hands observations of this space to the extractor as they are, but for the type.

    It divides pictures by 255 and writes discrete entries as one-hot vectors.
    """
    if isinstance(space, spaces.Dict):
        return all(_only_flattened(part) for part in space.values())
    if isinstance(space, spaces.Box):
        return space.dtype == np.float32
    return isinstance(space, spaces.MultiBinary)
