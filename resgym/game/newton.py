"""The vertices of Newton polyhedra, exactly: the points that the option ``newton`` keeps.

A point of a set S is a vertex of conv(S) + R^D_{>=0} exactly when no mean of the other points is <=
it on all axes. Each point is decided in Python integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from operator import mul

import torch
from torch import Tensor


def newton_vertices(points: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Keep the vertices of the Newton polyhedron of every game.

    The result is exact for all coordinates. On an accelerator this waits for the device.

    The first ``count`` int64 [N] rows of the points int64 [N, P, D], 0..2^59, are distinct, and
    none is >= another one on all axes. The vertices keep their order, absent rows are -1. If no
    game has three points, the arguments themselves are returned.
    """
    # One point is a vertex, and so are two that do not cover each other.
    several = (count >= 3).nonzero()[:, 0]
    if not len(several):
        return points, count
    after = points[several].cpu()
    kept = torch.zeros(after.shape[:2], dtype=torch.bool)
    for row, size in enumerate(count[several].tolist()):
        game = after[row, :size].tolist()
        kept[row, :size] = torch.tensor([is_vertex(point, game) for point in game])
    left = kept.sum(1)
    packed = torch.full_like(after, -1)
    packed[torch.arange(kept.shape[1]) < left[:, None]] = after[kept]
    after = points.index_copy(0, several, packed.to(points.device))
    return after, count.index_copy(0, several, left.to(count.device))


def is_vertex(point: Sequence[int], points: Sequence[Sequence[int]]) -> bool:
    """Return whether no mean of the others is <= a point, among distinct points of D integers.

    With g_kj the gaps from the point to the others and c > -min(g), the linear programme "maximise
    sum_k y_k with sum_k y_k (g_kj + c) <= 1 for every axis j and y >= 0" has the optimum
    1 / (c + V), where V is the least max_j sum_k weight_k g_kj over all weights with sum 1. The
    point is not a vertex exactly when V <= 0, that is c * optimum >= 1.

    The simplex method runs on the inverse of the basis, scaled by its determinant, which keeps
    every number an integer and every division exact (Edmonds 1967, Bareiss 1968). It takes the
    first of the columns that improve and of the rows that tie (Bland 1977), so it ends.
    """
    others = (other for other in points if other != point)
    gaps = [[x - y for x, y in zip(other, point, strict=True)] for other in others]
    if not gaps:
        return True
    dimension = len(gaps[0])
    # Most vertices are the least point in the direction in which their own distances to the least
    # coordinates weigh the same, and the axes on which they are least weigh more than all others.
    lowest = [min(column) for column in zip(*gaps, strict=True)]
    unit = prod(-low for low in lowest if low < 0)
    weights = [unit // -low if low < 0 else dimension * unit for low in lowest]
    if all(sum(map(mul, weights, gap)) > 0 for gap in gaps):
        return True
    shift = 1 - min(lowest)
    columns = [[int(i == j) for i in range(dimension)] for j in range(dimension)]
    # Row i of the table: row i of determinant * inverse basis, then of its right-hand side. The
    # prices of the axes and the objective have the same form.
    table = [[*column, 1] for column in columns]
    prices = [0] * (dimension + 1)
    # The first columns are the slack of the axes, which is worth nothing.
    basis = list(range(dimension))
    columns += [[gap + shift for gap in row] for row in gaps]
    determinant = 1
    while prices[-1] * shift < determinant:
        for entering, column in enumerate(columns):
            cost = sum(map(mul, prices, column)) - (determinant if entering >= dimension else 0)
            if cost < 0:
                break
        else:
            return True
        change = [sum(map(mul, row, column)) for row in table]
        # All columns are positive, so the programme is bounded and some row always leaves.
        ratios = [
            (Fraction(row[-1], rate), variable, index)
            for index, (row, rate, variable) in enumerate(zip(table, change, basis, strict=True))
            if rate > 0
        ]
        leaving = min(ratios)[2]
        pivot_row, pivot = table[leaving], change[leaving]
        *table, prices = [
            [(pivot * x - factor * y) // determinant for x, y in zip(row, pivot_row, strict=True)]
            for row, factor in zip((*table, prices), (*change, cost), strict=True)
        ]
        table[leaving] = pivot_row
        basis[leaving], determinant = entering, pivot
    return False
