"""Action values of plain networks without autograd: flat observations, ReLU layers, plain head."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from sb3_ext.ddqn.policies import LegalQNetwork
from sb3_ext.networks.extractors import FlattenExtractor, flatten_entries
from sb3_ext.networks.relu_stack import ReluStack

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

    def to_explore(self, observation: Any, precision: str) -> Tensor:
        """Action values `[B, A]` to play with, float32, new.

        Args:
            observation: as the network takes it, B rows.
            precision: of the products, one of `sb3_ext.ddqn.arguments.ROLLOUT_PRECISIONS`.
        """
        x = flatten_entries(observation, self._keys)
        half = precision == "bfloat16"
        if half or (precision == "auto" and self.stack.is_faster_in_bfloat16(len(x))):
            return self.stack.in_bfloat16(x)
        return self.stack(x)

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
    if not isinstance(network, LegalQNetwork):
        return None
    layers = network.plain_layers()
    if layers is None:
        return None
    if before is not None and before.is_of(network, layers):
        return before
    return StackedNetwork(network, layers)
