"""Whether a point is a vertex of a Newton polyhedron, in integers of any size."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul

__all__ = ["is_vertex"]


def is_vertex(gaps: Sequence[Sequence[int]]) -> bool:
    """Whether no mean of other points is <= a point on all axes.

    With g_kj the gaps and c > -min(g), the linear programme "maximise sum_k y_k with
    sum_k y_k (g_kj + c) <= 1 for every axis j and y >= 0" has the optimum 1 / (c + V), where V is
    the least max_j sum_k weight_k g_kj over all weights with sum 1. The point is no vertex exactly
    when V <= 0, that is c * optimum >= 1.

    The simplex method is run on the inverse of the basis, scaled by its determinant, which keeps
    every number an integer and every division exact (Edmonds 1967, Bareiss 1968). Of the columns
    that improve and of the rows that tie the first is taken (Bland 1977), so it ends.

    Args:
        gaps: K rows of D integers, other points minus the point, none of them 0 throughout.
    """
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
