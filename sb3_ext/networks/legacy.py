"""Networks laid out as those of the first trainer of this game, to repeat its runs.

features      a ReLU on the input itself, so that an absent point (-1) and the origin are one
a width       linear, ReLU;  b puts a BatchNorm before the ReLU, at the beginning before the
              input's, and a second one in a row is none
rK            relu(skip(x) + block(x)), where a skip of another width is linear with BatchNorm
the end       no activation after the last item: the output layer follows at once
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gymnasium import spaces
from torch import nn

from sb3_ext.networks.extractors import EXTRACTORS, FlattenExtractor
from sb3_ext.networks.mlp import Mlp, ResidualBlock, expand_net_arch


@EXTRACTORS.register("legacy")
class LegacyExtractor(FlattenExtractor):
    """As `FlattenExtractor`, with ``points`` before the other entries of a Dict space."""

    def __init__(self, observation_space: spaces.Space[Any]) -> None:
        super().__init__(observation_space)
        self.keys = tuple(sorted(self.keys, key=lambda key: (key != "points", key)))


def build_legacy_mlp(
    input_dim: int, net_arch: Sequence[Any], activation: Callable[[], nn.Module] = nn.ReLU
) -> Mlp:
    """All but the output layer, see the module; arguments and errors as of `build_mlp`.

    Raises:
        ValueError: ``net_arch`` has a LayerNorm, which that language did not have.
    """
    layers: list[nn.Module] = [activation()]
    width, last = input_dim, None
    for position, item in expand_net_arch(net_arch):
        if item == "ln":
            raise ValueError(f"{position}: legacy_layout knows widths, 'b' and 'rK', got 'ln'")
        if item == "b":
            if last != "b":
                layers.insert(-1, nn.BatchNorm1d(width))
        elif isinstance(item, int):
            layers += [nn.Linear(width, item), activation()]
            width = item
        else:
            before, width = width, int(item[1:])
            block: Any = ResidualBlock(before, width, activation)
            block.activation = nn.Identity()  # comes after a BatchNorm, if one follows
            if before != width:
                block.skip = nn.Sequential(block.skip, nn.BatchNorm1d(width))
            layers += [block, activation()]
        last = item
    network = Mlp(*layers[:-1])
    network.output_dim = width
    return network
