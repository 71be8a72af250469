"""Positions as tuples of Python integers: the exact rule, and a canonical form.

Python integers are unbounded, so nothing here can overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain, groupby, permutations, product
from math import factorial, gcd, prod
from operator import le

from resgym.game.actions import action_axes

Position = tuple[tuple[int, ...], ...]

MAX_PERMUTATIONS = 720
"""Axes with equal values are tried in every order, up to this many orders; beyond that they keep
their order, which misses some equal positions but stays correct."""


@cache
def search_actions(dimension: int) -> tuple[tuple[int, ...], ...]:
    """Return the host's axis sets in search order: smaller sets first, then by bit pattern."""
    return tuple(sorted(action_axes(dimension), key=len))


def prune(points: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the points that no other point is <= to in all axes, in ascending order."""
    kept: list[tuple[int, ...]] = []
    # Ascending order puts a point behind every point that is <= to it.
    for point in sorted(set(points)):
        for other in kept:
            if all(map(le, other, point)):
                break
        else:
            kept.append(point)
    return kept


def moved(
    position: Sequence[tuple[int, ...]], axes: tuple[int, ...], axis: int
) -> list[tuple[int, ...]]:
    """Return the pruned points after the host's set ``axes`` and the agent's ``axis``."""
    return prune(
        [(*point[:axis], sum([point[k] for k in axes]), *point[axis + 1 :]) for point in position]
    )


def _reduced_columns(points: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    columns = list(zip(*points, strict=True))
    for axis, column in enumerate(columns):
        lowest = min(column)
        if lowest:
            columns[axis] = tuple([value - lowest for value in column])
    divisor = gcd(*chain.from_iterable(columns))
    if divisor > 1:
        columns = [tuple([value // divisor for value in column]) for column in columns]
    return columns


def reduced(points: Sequence[tuple[int, ...]]) -> Position:
    """Shift pruned points to the origin in every axis and divide them by their common divisor.

    This changes no outcome, and keeps the order of points and axes. A finished position becomes the
    origin.
    """
    return tuple(zip(*_reduced_columns(points), strict=True))


def canonical(points: Sequence[tuple[int, ...]]) -> Position:
    """Return one form for all positions that differ by a shift, a factor or an order of axes.

    Axes are sorted by their sorted values. Axes with equal values are tried in every order, and the
    lexicographically least sorted set of points is taken.

    Args:
        points: a pruned position.
    """
    columns = _reduced_columns(points)
    dimension = len(columns)
    values = [sorted(column) for column in columns]
    order = sorted(range(dimension), key=values.__getitem__)
    groups = [tuple(group) for _, group in groupby(order, key=values.__getitem__)]
    # The order of axes that are 0 throughout does not matter.
    tied = [len(group) if any(columns[group[0]]) else 1 for group in groups]
    if prod(map(factorial, tied)) > MAX_PERMUTATIONS:
        tied = [1] * len(groups)
    orders = product(
        *(
            permutations(group) if number > 1 else [group]
            for group, number in zip(groups, tied, strict=True)
        )
    )
    return min(
        tuple(sorted(zip(*[columns[axis] for axis in chain(*choice)], strict=True)))
        for choice in orders
    )
