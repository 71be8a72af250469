"""Points of many games as rows for networks: only those that are there, or all of fixed shape.

Letters: N games, P rows of points each, D axes, R rows in all, Q ordered pairs, G groups, F
features.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

PATIENCE = 2**20
"""Numbers that torch packs and pools before the compiled loops are loaded, which takes longer; a
thousand more a call. Both give the same bits, so it does not matter when a process changes over."""

_numbers = 0

Observations = Tensor | Mapping[str, Tensor]
"""Points of N games, float [N, P, D], or a mapping with them and other entries [N, ...]."""


def shapes_are_fixed(points: Tensor) -> bool:
    """Whether shapes must not depend on data, as for CUDA graphs, compilers and TorchScript."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing() or not points.is_cpu


class Rows:
    """The points of observations, canonical, game by game.

    On a CPU only those that are present: in play about one in seven, so the network costs less.
    Elsewhere, and under a compiler, all of them.

    Args:
        points: float [N, P, D]; a row with a negative first entry is absent.

    Attributes:
        count: int64 [N], points of each game.
        points: [R, D]; absent ones are 0.
        groups: the games, as `pool` takes them.
    """

    def __init__(self, points: Tensor) -> None:
        self._fixed = shapes_are_fixed(points) or len(points) == 0
        if not self._fixed and _suits_loops(points) and not points.requires_grad:
            self.points = torch.empty_like(points).flatten(0, 1)
            self._game = torch.empty(len(self.points), dtype=torch.int64)
            self.groups = self.count = torch.empty(len(points), dtype=torch.int64)
            packed = (points, self.points, self._game, self.count)
            total = _loops().pack_canonical(*(each.numpy() for each in packed))
            self.points, self._game = self.points[:total], self._game[:total]
            return
        present = points[:, :, 0] >= 0
        canonical = canonical_points(points, present)
        self.groups = self.count = present.sum(1)
        if self._fixed:
            self.points, self.groups = canonical.flatten(0, 1), present
        else:
            self.points = canonical[present]
            self._game = torch.arange(len(points)).repeat_interleave(self.count)  # of each row

    def spread(self, x: Tensor) -> Tensor:
        """[N, F], one per game, to rows of points [R, F]."""
        if not self._fixed:
            return x.index_select(0, self._game)
        # Its gradient is a sum, that of an index is added up in an order that may vary.
        return x[:, None].expand(*self.groups.shape, x.shape[1]).flatten(0, 1)

    def pairs(self) -> tuple[Tensor, Tensor, Tensor]:
        """All ordered pairs of a game's points: the rows of both, int64 [Q] each, and the groups.

        Each point has a group with its pairs. With all rows a point and itself is among them, and
        absent ones are, which the groups leave out.
        """
        rows = torch.arange(self.points.shape[0], device=self.count.device)
        if self._fixed:
            here, size = self.groups, self.groups.shape[1]
            apart = ~torch.eye(size, dtype=torch.bool, device=here.device)
            together = (here[:, :, None] & here[:, None] & apart).flatten(0, 1)
            second = rows.view(-1, 1, size).expand(-1, size, size).flatten()
            return rows.repeat_interleave(size), second, together
        others = (self.count - 1)[self._game]
        first = rows.repeat_interleave(others)
        begin = (self.count.cumsum(0) - self.count)[self._game] - (others.cumsum(0) - others)
        second = torch.arange(len(first)) + begin[first]
        return first, second + (second >= first), others


def pool(x: Tensor, groups: Tensor, mean: bool = True) -> Tensor:
    """The maximum over each group, and the mean behind it if asked for: [G, 2 F], 0 without any.

    Args:
        x: [R, F], group by group.
        groups: how many rows each has, int64 [G], or which of its K rows count, bool [G, K].
        mean: False gives the maximum alone, [G, F].
    """
    size = x.shape[1]
    if groups.dtype is torch.bool:
        x = x.view(*groups.shape, size)
        absent = ~groups[:, :, None]
        parts = [x.masked_fill(absent, torch.finfo(x.dtype).min).amax(1)]
        if mean:
            parts.append(x.masked_fill(absent, 0.0).sum(1) / groups.sum(1).clamp(min=1)[:, None])
        return torch.cat(parts, 1).masked_fill(~groups.any(1, keepdim=True), 0.0)
    if _suits_loops(x):
        pooled: Tensor = _Pool.apply(x, groups)  # type: ignore[no-untyped-call]
        return pooled if mean else pooled[:, :size]
    index = torch.arange(len(groups)).repeat_interleave(groups)[:, None].expand_as(x)
    highest = x.new_full((len(groups), size), -torch.inf).scatter_reduce(0, index, x, "amax")
    parts = [highest.masked_fill((groups == 0)[:, None], 0.0)]
    if mean:
        zeros = x.new_zeros(highest.shape)
        parts.append(zeros.scatter_reduce(0, index, x, "mean", include_self=False))
    return torch.cat(parts, 1)


Columns = tuple[Sequence[int], Sequence[int]]
"""Pairs of columns: the first ones and the second ones."""


def quotients(sums: Tensor, columns: Columns | None = None) -> Tensor:
    """`quotient_features`, by compiled loops where they suit, with the same bits."""
    if shapes_are_fixed(sums) or not _suits_loops(sums):
        return quotient_features(sums, columns)
    left, right = map(np.array, columns or sums_and_axes(sums.shape[1]))
    features = sums.new_empty(len(sums), 2 * len(left))
    _loops().quotient_features(sums.numpy(), left, right, features.numpy())
    return features


@cache
def _loops() -> Any:
    """The compiled loops, or None without numba."""
    try:
        return import_module("sb3_ext.networks.compiled_rows")
    except (ImportError, OSError):  # not installed, or a part of it that cannot be loaded
        return None


def _suits_loops(x: Tensor) -> bool:
    global _numbers
    if x.dtype is not torch.float32 or not x.is_cpu or not x.is_contiguous():
        return False
    _numbers += 1000 + x.numel()
    return (x.requires_grad or _numbers > PATIENCE) and _loops() is not None


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, count: Tensor) -> Tensor:
        pooled = x.new_empty(len(count), 2 * x.shape[1])
        _loops().pool(x.detach().numpy(), count.numpy(), pooled.numpy())
        context.save_for_backward(x, count, pooled)
        return pooled

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        x, count, pooled = context.saved_tensors
        result = torch.empty_like(x)
        given = (x.detach(), count, pooled.detach(), gradient.contiguous(), result)
        _loops().pool_backward(*(each.numpy() for each in given))
        return result, None


# Of coordinates in [0, 1]: smaller differences are rounding, smaller logarithms are cut off.
_EQUAL = 1e-6
_SMALLEST = 1e-3


def points_of(observations: Observations) -> Tensor:
    """The points of an observation, float [N, P, D]."""
    points = observations if isinstance(observations, Tensor) else observations["points"]
    return points if points.is_floating_point() else points.float()


def canonical_points(points: Tensor, present: Tensor) -> Tensor:
    """Shift and scale each set of points [N, P, D], which does not change the game.

    The least coordinate on every axis becomes 0 and the largest of all becomes 1, unless all are 0.
    Points outside `present`, bool [N, P], become 0.
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
    return x @ _sets(int(x.shape[-1]), x.device, x.dtype)


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


def quotient_features(sums: Tensor, columns: Columns | None = None) -> Tensor:
    """How long two points can keep a game in two axes busy, for every such game one move away.

    In two axes an edge (a, -b) lasts as many moves as Euclid's algorithm by subtraction takes, the
    sum of the partial quotients of a / b (docs/mathematics.md). After the host's set J and the
    answer j the axis j has the sum of J; so for every sum of axes beside a single one, both in
    `axis_sums` [Q, S] of one point minus another, this gives a tenth of that number, 0 where the
    signs are the same, and a fifth of the first quotient: [Q, 2 K] for K such pairs, 3, 15 or 50
    in 2, 3 or 4 axes, or for other pairs of columns. Seven quotients of at most 40 are taken;
    they are exact for whole coordinates up to about 100, divided by the largest one, and beyond
    that as good as float32.
    """
    left, right = columns or sums_and_axes(int(sums.shape[-1]))
    a = sums[:, left]
    b = sums[:, right]
    larger = a.abs()
    smaller = b.abs()
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
