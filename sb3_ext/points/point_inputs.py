"""What networks are told about the points of a game and about pairs of them.

An observation holds the points of N games, float [N, P, D], or is a dictionary with such an entry
``points``. A row with a negative first entry is absent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from torch import Tensor

from sb3_ext.networks.extractors import flatten_entries
from sb3_ext.networks.mlp import Mlp, build_mlp, expand_net_arch

# Of coordinates in [0, 1]: smaller differences are rounding, smaller logarithms are cut off.
_EQUAL = 1e-6
_SMALLEST = 1e-3


def points_of(observations: Tensor | Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The points of an observation, float [N, P, D], and which are present, bool [N, P]."""
    points = observations if isinstance(observations, Tensor) else observations["points"]
    points = points if points.is_floating_point() else points.float()
    return points, points[:, :, 0] >= 0


def canonical_points(points: Tensor, present: Tensor) -> Tensor:
    """Moves and scales each set [N, P, D] so that it touches every x_i = 0, with largest entry 1.

    The game is the same for a set that is translated or scaled, so nothing is lost by it.
    """
    absent = ~present[:, :, None]
    shifted = points - points.masked_fill(absent, torch.inf).amin(1, keepdim=True)
    shifted = shifted.masked_fill(absent, 0.0)
    largest = shifted.amax((1, 2), keepdim=True)
    return shifted / torch.where(largest > 0, largest, 1.0)


def point_features(points: Tensor) -> Tensor:
    """[..., D], at least 0, to [..., 3 D]: x, log(x + 0.001) scaled to about 0..1, and x == 0.

    A move adds coordinates, so that after a few moves they lie many orders of magnitude apart;
    the logarithm keeps the small ones apart, and whether one is exactly 0 decides what it can do.
    """
    logarithm = (points + _SMALLEST).log() / -math.log(_SMALLEST) + 1.0
    return torch.cat([points, logarithm, (points == 0).to(points.dtype)], -1)


@cache
def _sets(dimension: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """[D, S]: column s marks the axes of the number s + 1, read as bits; S = 2^D - 1."""
    numbers = torch.arange(1, 2**dimension)
    return (numbers >> torch.arange(dimension)[:, None] & 1).to(device, dtype)


def axis_sums(x: Tensor) -> Tensor:
    """The sums of [..., D] over all S = 2^D - 1 non-empty sets of axes, [..., S].

    Set s holds axis j where bit j of s + 1 is set.
    """
    return x @ _sets(x.shape[-1], x.device, x.dtype)


def pair_features(sums: Tensor) -> Tensor:
    """What a network is told about two points: on which sets of axes is one ahead, and how far?

    A move replaces a coordinate by its sum over a set of axes, and which points are dropped after
    it is decided by the signs of the differences of such sums: `axis_sums` [..., S] of one point
    minus another, of coordinates in 0..1. The result [..., 3 S] is odd in them: the sums (below
    1e-6 they count as 0), their signs, and logarithms with the sign, scaled to about -1..1.
    """
    sums = sums.masked_fill(sums.abs() < _EQUAL, 0.0)
    sign = sums.sign()
    size = (sums.abs() + _SMALLEST).log() / -math.log(_SMALLEST) + 1.0
    return torch.cat([sums, sign, sign * size], -1)


def quotient_features(sums: Tensor) -> Tensor:
    """How long two points can keep a game in two axes busy, for every such game one move away.

    In two axes an edge (a, -b) lasts as many moves as Euclid's algorithm by subtraction takes, the
    sum of the partial quotients of a / b (docs/mathematics.md). After the host's set J and the
    answer j the axis j has the sum of J; so for every sum of axes beside a single one, both in
    `axis_sums` [Q, S] of one point minus another, this gives a tenth of that number, 0 where the
    signs are the same, and a fifth of the first quotient: [Q, 2 K] for K such pairs, 3, 15 or 50
    in 2, 3 or 4 axes. Seven quotients of at most 40 are taken;
    they are exact for whole coordinates up to about 100, divided by the largest one, and beyond
    that as good as float32.
    """
    left, right = _sums_and_axes(sums.shape[-1])
    a, b = sums[:, left], sums[:, right]
    larger, smaller = a.abs(), b.abs()
    larger, smaller = torch.maximum(larger, smaller), torch.minimum(larger, smaller)
    zero = 2e-5 * larger + 1e-7  # what rounding leaves of nothing
    quotients = []
    for _ in range(7):
        going = smaller > zero
        quotient = (larger / smaller.clamp(min=1e-9) + 4e-3).floor().clamp(max=40.0) * going
        quotients.append(quotient)
        rest = (larger - quotient * smaller).clamp(min=0.0)
        larger, smaller = torch.where(going, smaller, larger), torch.where(going, rest, smaller)
    falling = (a * b < -1e-9).to(sums.dtype)
    moves = torch.stack(quotients).sum(0)
    return torch.cat([falling * moves / 10, falling * quotients[0] / 5], 1)


@cache
def _sums_and_axes(num_sums: int) -> tuple[list[int], list[int]]:
    """Numbers of sums of axes, and of one axis for each: two axes once, larger sums with all."""
    dimension = (num_sums + 1).bit_length() - 1
    pairs = [
        (number - 1, (1 << axis) - 1)
        for number in range(1, num_sums + 1)
        for axis in range(dimension)
        if number.bit_count() > 1 or number < 1 << axis
    ]
    left, right = zip(*pairs, strict=True)
    return list(left), list(right)


class PointEntries:
    """Where an observation has its points, and what else it holds.

    There are at most `most` points of D = `dimension` axes. The `others`, in alphabetical order,
    make `other_size` numbers; those `beside` have D values, which describe the axes.
    """

    def __init__(self, extractor: str, space: spaces.Space[Any]) -> None:
        """Raises ValueError, which names the extractor, if the space has no points."""
        entries = dict(space.spaces) if isinstance(space, spaces.Dict) else {"points": space}
        points = entries.pop("points", None)
        if not isinstance(points, spaces.Box) or len(points.shape) != 2:
            raise ValueError(
                f"{extractor} needs a Box of shape (points, dimension), or a Dict with such an"
                f" entry 'points', got {space}"
            )
        self.most, self.dimension = points.shape
        self.others = tuple(sorted(entries))
        self.beside = tuple(key for key in self.others if entries[key].shape == points.shape[1:])
        self.other_size = sum(get_flattened_obs_dim(each) for each in entries.values())

    @property
    def row_size(self) -> int:
        """Width of what `rows` gives."""
        return self.dimension * (3 + len(self.beside))

    def rows(self, rows: Any, observations: Tensor | Mapping[str, Tensor]) -> Tensor:
        """What a network is told about each row of points, [R, row_size]."""
        features = point_features(rows.points.clamp(min=0.0))
        if not self.beside:
            return features
        return torch.cat([features, rows.spread(flatten_entries(observations, self.beside))], 1)

    def with_others(
        self, features: list[Tensor], observations: Tensor | Mapping[str, Tensor]
    ) -> Tensor:
        """Features [N, ...] of the points one after another, then the other entries."""
        if self.others:
            features = [*features, flatten_entries(observations, self.others)]
        return torch.cat(features, 1) if len(features) > 1 else features[0]


def build_point_net(name: str, input_dim: int, net_arch: Sequence[Any], activation: Any) -> Mlp:
    """As `build_mlp`, for points one by one; ValueError with the argument's name for BatchNorm."""
    for position, item in expand_net_arch(net_arch):
        if item == "b" or (isinstance(item, str) and item.startswith("r")):
            raise ValueError(
                f"{name}: {position} {item!r} has BatchNorm, whose statistics would depend on the "
                "padding; use 'ln' here, or BatchNorm in head_net"
            )
    return build_mlp(input_dim, net_arch, activation=activation)
