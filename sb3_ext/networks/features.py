"""Features of the points of a game and of pairs of points.

An observation holds the points of N games, float [N, P, D], or is a dictionary with such an entry
``points``. A row with a negative first entry is absent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import torch
from torch import Tensor

# Of coordinates in [0, 1]: smaller differences are rounding, smaller logarithms are cut off.
_EQUAL = 1e-6
_SMALLEST = 1e-3


def points_of(observations: Tensor | Mapping[str, Tensor]) -> Tensor:
    """The points of an observation, float [N, P, D]."""
    points = observations if isinstance(observations, Tensor) else observations["points"]
    return points if points.is_floating_point() else points.float()


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
    left, right = sums_and_axes(sums.shape[-1])
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
def sums_and_axes(num_sums: int) -> tuple[list[int], list[int]]:
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
