"""Positions as tuples of plain integers: the exact rule, and the keys of a search table.

Python integers have no bound, so nothing here can overflow. `compiled_search` does the same on
int64 arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain, groupby, permutations, product
from math import factorial, gcd, prod
from operator import le

__all__ = [
    "Position",
    "canonical",
    "canonical_order",
    "children",
    "moved",
    "prune",
    "reduced",
    "search_actions",
]

Position = tuple[tuple[int, ...], ...]

MAX_PERMUTATIONS = 720
"""Axes that cannot be told apart by their values are tried in every order up to this many orders;
beyond it they keep theirs, which costs merged positions but no correctness."""


@cache
def search_actions(dimension: int) -> tuple[tuple[int, ...], ...]:
    """The host's axis sets in the order of the search: smaller sets first, then by bit pattern."""
    numbers = [number for number in range(1, 2**dimension) if number & (number - 1)]
    numbers.sort(key=lambda number: (number.bit_count(), number))
    return tuple(
        tuple(axis for axis in range(dimension) if number >> axis & 1) for number in numbers
    )


def prune(points: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The points that no other point is <= to in all axes, in ascending lexicographic order."""
    kept: list[tuple[int, ...]] = []
    # Ascending order puts a point behind every point that is <= to it.
    for point in sorted(set(points)):
        for other in kept:
            if all(map(le, other, point)):
                break
        else:
            kept.append(point)
    return kept


def moved(position: Position, axes: tuple[int, ...], axis: int) -> list[tuple[int, ...]]:
    """The pruned points after the host's set ``axes`` and the agent's ``axis``."""
    return _replaced(position, _totals(position, axes), axis)


def _totals(position: Position, axes: tuple[int, ...]) -> list[int]:
    return [sum([point[axis] for axis in axes]) for point in position]


def _replaced(position: Position, totals: list[int], axis: int) -> list[tuple[int, ...]]:
    return prune(
        [
            (*point[:axis], total, *point[axis + 1 :])
            for point, total in zip(position, totals, strict=True)
        ]
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
    """Pruned points moved to the origin in every axis and divided by their common divisor.

    Neither changes any outcome; the order of points and axes stays. A finished position becomes
    the origin.
    """
    return tuple(zip(*_reduced_columns(points), strict=True))


def canonical(points: Sequence[tuple[int, ...]]) -> Position:
    """One form for all positions that differ by a shift, a factor or an order of the axes.

    Axes are sorted by their sorted values; axes with equal values are tried in every order, and the
    lexicographically least sorted set of points is taken.

    Args:
        points: a pruned position.
    """
    return canonical_order(points)[0]


def canonical_order(points: Sequence[tuple[int, ...]]) -> tuple[Position, tuple[int, ...]]:
    """The canonical form, and which axis of the given points each of its axes is."""
    columns = _reduced_columns(points)
    dimension = len(columns)
    if len(points) == 1:
        return (tuple([0] * dimension),), tuple(range(dimension))
    values = [sorted(column) for column in columns]
    order = tuple(sorted(range(dimension), key=values.__getitem__))
    groups = [tuple(group) for _, group in groupby(order, key=values.__getitem__)]
    if len(groups) == dimension or _number_of_orders(groups) > MAX_PERMUTATIONS:
        return _permuted(columns, order), order
    orders = (
        tuple(axis for group in choice for axis in group)
        for choice in product(*(permutations(group) for group in groups))
    )
    return min((_permuted(columns, order), order) for order in orders)


def _number_of_orders(groups: list[tuple[int, ...]]) -> int:
    return prod(factorial(len(group)) for group in groups)


def _permuted(columns: list[tuple[int, ...]], order: tuple[int, ...]) -> Position:
    return tuple(sorted(zip(*[columns[axis] for axis in order], strict=True)))


def children(position: Position) -> list[list[Position]]:
    """Canonical answers of the agent to every action of `search_actions`, in the order of axes."""
    answers = []
    for axes in search_actions(len(position[0])):
        totals = _totals(position, axes)
        answers.append([canonical(_replaced(position, totals, axis)) for axis in axes])
    return answers
