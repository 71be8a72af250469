"""The vertices of Newton polyhedra, exactly: the points that the option ``newton`` keeps.

A point of a set S is a vertex of conv(S) + R^D_{>=0} exactly when no mean of the other points is <=
it on all axes. Nearly all points are decided by floating point with a proof (`filter`), the rest,
such as points on a face between points with large coordinates, in Python integers (`is_vertex`).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul

import torch
from torch import Tensor

from resgym.game.newton.filter import NO_VERTEX, UNDECIDED, VERTEX, prove

# Up to this many points, integers are faster than the first tensor operation.
_FEW = 32

# Numbers in a tensor of gaps: what fits in a core's cache, and what fills an accelerator.
_CPU_CHUNK = 2**18
_DEVICE_CHUNK = 2**24


def newton_vertices(points: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Keeps the vertices of the Newton polyhedron of every game.

    Exact for all coordinates that a state may hold. On an accelerator this waits for the device,
    and the points that floating point cannot decide are decided on the CPU.

    The first ``count`` int64 [N] rows of the points int64 [N, P, D], 0..2^59, are distinct, none
    >= another one on all axes. The vertices stay in their order, absent rows are -1; if no game has
    three points, the arguments themselves come back.
    """
    # One point is a vertex, and so are two that do not cover each other.
    several = (count >= 3).nonzero()[:, 0]
    if not len(several):
        return points, count
    sizes = count.index_select(0, several)
    width = int(sizes.max())
    row = torch.arange(width, device=points.device)
    alive = row < sizes[:, None]
    some = points.index_select(0, several)[:, :width]
    game, own = alive.nonzero(as_tuple=True)
    if points.device.type == "cpu" and len(game) <= _FEW:
        verdict = torch.full_like(game, UNDECIDED, dtype=torch.int8)
    else:
        verdict = _proved(some, sizes, game, own)
    _decide_exactly(some, sizes, game, own, verdict)
    kept = torch.zeros_like(alive)
    kept[game, own] = verdict == VERTEX
    left = kept.sum(1)
    packed = torch.full_like(some, -1)
    packed[row < left[:, None]] = some[kept]
    after = points.clone()
    after[several, :width] = packed
    return after, count.index_copy(0, several, left)


def _proved(points: Tensor, count: Tensor, game: Tensor, own: Tensor) -> Tensor:
    """Verdicts int8 [M] of floating point on the points ``own`` [M] of the games ``game`` [M]."""
    _, width, dimension = points.shape
    on_cpu = points.device.type == "cpu"
    size = max((_CPU_CHUNK if on_cpu else _DEVICE_CHUNK) // (width * dimension), 1)
    columns = points.permute(2, 1, 0).contiguous()
    row = torch.arange(width, device=points.device)
    verdict = torch.empty_like(game, dtype=torch.int8)
    # Games of one size together: each chunk is only as wide as it has to be.
    order = count.index_select(0, game).argsort()
    for start in range(0, len(order), size):
        chunk = order[start : start + size]
        games, owns = game.index_select(0, chunk), own.index_select(0, chunk)
        sizes = count.index_select(0, games)
        used = int(sizes[-1])
        others = columns[:, :used].index_select(2, games)
        gaps = others - others.gather(1, owns.expand(dimension, 1, len(owns)))
        present = (row[:used, None] < sizes) & (row[:used, None] != owns)
        verdict[chunk] = prove(gaps, present)
    return verdict


def _decide_exactly(
    points: Tensor, count: Tensor, game: Tensor, own: Tensor, verdict: Tensor
) -> None:
    """Fills in the verdicts that are missing, on the CPU."""
    missing = (verdict == UNDECIDED).nonzero()[:, 0]
    if not len(missing):
        return
    games, places = torch.unique(game[missing], return_inverse=True)
    sizes = count[games].tolist()
    sets = [rows[:size] for rows, size in zip(points[games].tolist(), sizes, strict=True)]
    answers = [
        VERTEX if is_vertex(sets[place][row], sets[place]) else NO_VERTEX
        for place, row in zip(places.tolist(), own[missing].tolist(), strict=True)
    ]
    verdict[missing] = torch.tensor(answers, dtype=torch.int8, device=verdict.device)


def is_vertex(point: Sequence[int], points: Sequence[Sequence[int]]) -> bool:
    """Whether no mean of the others among distinct points of D integers is <= one on all axes.

    With g_kj the gaps from the point to the others and c > -min(g), the linear programme "maximise
    sum_k y_k with sum_k y_k (g_kj + c) <= 1 for every axis j and y >= 0" has the optimum
    1 / (c + V), where V is the least max_j sum_k weight_k g_kj over all weights with sum 1. The
    point is no vertex exactly when V <= 0, that is c * optimum >= 1.

    The simplex method is run on the inverse of the basis, scaled by its determinant, which keeps
    every number an integer and every division exact (Edmonds 1967, Bareiss 1968). Of the columns
    that improve and of the rows that tie the first is taken (Bland 1977), so it ends.
    """
    others = (other for other in points if other != point)
    gaps = [[x - y for x, y in zip(other, point, strict=True)] for other in others]
    # The only point with the least coordinate on some axis.
    if not gaps or max(map(min, zip(*gaps, strict=True))) > 0:
        return True
    dimension = len(gaps[0])
    shift = 1 - min(map(min, gaps))
    columns = [[gap + shift for gap in row] for row in gaps]
    # Row i of the table: row i of determinant * inverse basis, then of its right-hand side. The
    # last row of the same form holds the prices of the axes and the objective.
    table = [[int(i == j) for j in range(dimension)] + [1] for i in range(dimension)]
    prices = [0] * (dimension + 1)
    basis = list(range(-dimension, 0))  # -dimension + j is the slack of axis j
    determinant = 1
    while prices[-1] * shift < determinant:
        axis = next((axis for axis in range(dimension) if prices[axis] < 0), None)
        if axis is not None:
            entering, cost = axis - dimension, prices[axis]
            change = [row[axis] for row in table]
        else:
            scores = (sum(map(mul, prices, column)) for column in columns)
            entering = next((k for k, score in enumerate(scores) if score < determinant), -1)
            if entering < 0:
                return True
            column = columns[entering]
            cost = sum(map(mul, prices, column)) - determinant
            change = [sum(map(mul, row, column)) for row in table]
        leaving = -1
        for index in range(dimension):
            if change[index] <= 0:
                continue
            if leaving >= 0:
                ours = table[index][-1] * change[leaving]
                best = table[leaving][-1] * change[index]
                if ours > best or (ours == best and basis[index] > basis[leaving]):
                    continue
            leaving = index
        # All columns are positive, so the programme is bounded and some row always leaves.
        pivot_row, pivot = table[leaving], change[leaving]
        for index in range(dimension):
            if index != leaving:
                factor = change[index]
                table[index] = [
                    (pivot * x - factor * y) // determinant
                    for x, y in zip(table[index], pivot_row, strict=True)
                ]
        prices = [
            (pivot * x - cost * y) // determinant for x, y in zip(prices, pivot_row, strict=True)
        ]
        basis[leaving] = entering
        determinant = pivot
    return False
