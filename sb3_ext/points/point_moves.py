"""What becomes of a set of points after each of the game's moves, as inputs of networks.

A move (I, i) replaces coordinate i by the sum over the axes I and drops the points that are covered
then. All of it follows from the rule alone, so a network that is handed it has less to learn.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = [
    "EQUAL",
    "MAX_MOVE_DIMENSION",
    "Moves",
    "after_moves",
    "axis_sums",
    "covered_after",
    "moves",
    "pair_features",
]

EQUAL = 1e-6
"""Differences of coordinates in 0..1 that are smaller are rounding."""

_SMALLEST = 1e-3

MAX_MOVE_DIMENSION = 6
"""There are D 2^(D-1) - D moves: 9 in three axes, 186 in six."""


class Moves(NamedTuple):
    """All moves (I, i), M of them: sets by their numbers (bit j for axis j), axes ascending.

    Attributes:
        sets: int64 [M], the column of I in `axis_sums`.
        axes: int64 [M], the axis i.
        others: bool [D, M], whether an axis is another than i.
    """

    sets: Tensor
    axes: Tensor
    others: Tensor


@cache
def moves(dimension: int, device: torch.device) -> Moves:
    """The moves in D axes, 2 to `MAX_MOVE_DIMENSION`."""
    pairs = [
        (number, axis)
        for number in range(1, 2**dimension)
        if number.bit_count() > 1
        for axis in range(dimension)
        if number >> axis & 1
    ]
    sets = torch.tensor([number - 1 for number, _ in pairs])
    axes = torch.tensor([axis for _, axis in pairs])
    others = torch.arange(dimension)[:, None] != axes
    return Moves(sets.to(device), axes.to(device), others.to(device))


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
    it is decided by the signs of the differences of such sums, so these are handed over as they
    are: sums over all sets of axes, their signs, and their logarithms with the sign, scaled to
    about -1..1.

    Args:
        sums: float [..., S], `axis_sums` of one point minus another, of coordinates in 0..1.

    Returns:
        float [..., 3 S]; odd in ``sums``. Sums below 1e-6 count as 0.
    """
    sums = sums.masked_fill(sums.abs() < EQUAL, 0.0)
    sign = sums.sign()
    size = (sums.abs() + _SMALLEST).log() / -math.log(_SMALLEST) + 1.0
    return torch.cat([sums, sign, sign * size], -1)


def covered_after(sums: Tensor, dimension: int) -> Tensor:
    """Whether a point is covered by another one after each move, and the two do not coincide then.

    After the move (I, i) the difference of two points is the sum over I in coordinate i and
    unchanged elsewhere.

    Args:
        sums: [Q, S], `axis_sums` of the point minus the other one.
        dimension: number of axes D.

    Returns:
        float [Q, M], 1 where it is covered.
    """
    table = moves(dimension, sums.device)
    single = [(1 << j) - 1 for j in range(dimension)]

    def coordinates(which: Tensor) -> Tensor:
        """In how many coordinates it holds after each move."""
        which = which.to(sums.dtype)
        return which[:, single] @ table.others.to(sums.dtype) + which[:, table.sets]

    below, above = coordinates(sums < -EQUAL), coordinates(sums > EQUAL)
    return ((below == 0) & (above > 0)).to(sums.dtype)


def after_moves(points: Tensor) -> Tensor:
    """Points [R, D] after each move, [R, M, D]."""
    dimension = points.shape[1]
    table = moves(dimension, points.device)
    after = points[:, None].expand(-1, len(table.axes), -1)
    index = table.axes[None, :, None].expand(len(points), -1, 1)
    return after.scatter(2, index, axis_sums(points)[:, table.sets, None])
