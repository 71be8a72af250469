"""Positions as tuples of Python integers: the exact rule, and a canonical form.

Python integers are unbounded, so nothing here can overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, groupby, islice, permutations, product
from math import gcd
from operator import le

from resgym.game.spec import Axes, Point, action_axes

Position = tuple[Point, ...]


@cache
def search_actions(dimension: int, least: int = 2) -> tuple[Axes, ...]:
    """Return the host's axis sets in search order: smaller sets first, then by bit pattern."""
    return tuple(sorted(action_axes(dimension, least), key=len))


def prune(points: Iterable[Point]) -> list[Point]:
    """Return the points that no other point is <= to in all axes, in ascending order."""
    kept: list[Point] = []
    # Ascending order puts a point behind every point that is <= to it.
    for point in sorted(set(points)):
        for other in kept:
            if all(map(le, other, point)):
                break
        else:
            kept.append(point)
    return kept


def played(position: Sequence[Point], axes: Axes, axis: int, unit: int = 0) -> list[Point]:
    """Return all points after the host's set ``axes`` and the agent's ``axis``."""
    return [
        (*point[:axis], sum([point[k] for k in axes]) - unit, *point[axis + 1 :])
        for point in position
    ]


def moved(position: Sequence[Point], axes: Axes, axis: int) -> list[Point]:
    """Return the pruned points after the host's set ``axes`` and the agent's ``axis``."""
    return prune(played(position, axes, axis))


def reduced(points: Sequence[Point]) -> Position:
    """Shift pruned points to the origin in every axis and divide them by their common divisor.

    This changes no outcome, and keeps the order of points and axes. A finished position becomes the
    origin.
    """
    columns = []
    for column in zip(*points, strict=True):
        lowest = min(column)
        columns.append([value - lowest for value in column] if lowest else column)
    divisor = gcd(*chain.from_iterable(columns))
    if divisor > 1:
        columns = [[value // divisor for value in column] for column in columns]
    return tuple(zip(*columns, strict=True))


def canonical(points: Sequence[Point]) -> Position:
    """Return one form for all positions that differ by a shift, a factor or an order of axes.

    Of the `orders` of axes the one with the lexicographically least sorted set of points is taken.
    These are all orders that matter in up to six axes; with more, positions that differ by an order
    of axes with equal values may have different forms.

    Args:
        points: a pruned position.
    """
    found = orders(zip(*reduced(points), strict=True))
    return min(tuple(sorted(zip(*axes, strict=True))) for axes in found)


def orders(axes: Iterable[Point]) -> Iterator[Iterator[Point]]:
    """Yield axes in all orders in which their sorted values ascend, at most 720: all of six axes.

    Args:
        axes: for each axis, the coordinates of a position's points.
    """
    equal = groupby(sorted(axes, key=sorted), key=sorted)
    tied = [islice(permutations(group), 720) for _, group in equal]
    return (chain(*order) for order in islice(product(*tied), 720))
