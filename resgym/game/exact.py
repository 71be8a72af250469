"""The exact rules on positions in Python integers, a canonical form, and hosts that need no more.

Positions are tuples of points. An `OrderedRule` keeps the order in which they were typed, so a
chart reads like the polynomial that it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, groupby, islice, permutations, product
from math import gcd, prod
from operator import le, mul, sub
from typing import Any, Literal

from resgym.game.spec import MAX_COORDINATE, Axes, GameSpec, Point, action_axes, check_coordinates
from resgym.texts import shown

Position = tuple[Point, ...]

Ending = Literal[
    "resolved", "below_one", "no_contribution", "smooth", "crossings", "depth", "size", "overflow"
]
"""Why a branch ends: one monomial is left; the exponents of one add up to less than 1 (rule
``polyhedra``); the distinguished one is dropped (rule ``thom``); the strict transform is
smooth over the origin, or has normal crossings with the divisors, too (``stop``); cut by
``max_depth``; cut by ``max_nodes``; a coordinate would exceed 2^59."""


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


def minimal(points: Iterable[Point]) -> Position:
    """Return the points that `prune` keeps, in their own order."""
    given = dict.fromkeys(points)
    least = set(prune(given))
    return tuple(point for point in given if point in least)


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


def corner(points: Iterable[Point]) -> Point:
    """Return the least coordinate of points on every axis."""
    return tuple(map(min, zip(*points, strict=True)))


def shifted(points: Iterable[Point], origin: Point) -> list[Point]:
    """Return points with another origin."""
    return [tuple(map(sub, point, origin)) for point in points]


def played(
    position: Sequence[Point], axes: Axes, axis: int, total: Callable[[list[int]], int] = sum
) -> list[Point]:
    """Return all points after the host's set ``axes`` and the agent's ``axis``.

    ``total`` makes the new coordinate of a point from its coordinates in the set.
    """
    return [
        (*point[:axis], total([point[k] for k in axes]), *point[axis + 1 :]) for point in position
    ]


def moved(position: Sequence[Point], axes: Axes, axis: int) -> list[Point]:
    """Return the pruned points after the host's set ``axes`` and the agent's ``axis``."""
    return prune(played(position, axes, axis))


def reduced(points: Sequence[Point]) -> Position:
    """Shift pruned points to the origin in every axis and divide them by their common divisor.

    This changes no outcome, and keeps the order of points and axes. A finished position becomes the
    origin.
    """
    points = shifted(points, corner(points))
    divisor = gcd(*chain(*points))
    if divisor > 1:
        points = [tuple(value // divisor for value in point) for point in points]
    return tuple(points)


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


class OrderedRule:
    """The rule of a `GameSpec`; this class is the default rule."""

    def __init__(self, spec: GameSpec, weights: Iterable[int] | None = None) -> None:
        if weights is not None:
            raise ValueError(f"weights are for rule 'thom', got rule {spec.rule!r}")
        self.spec = spec

    def total(self, values: list[int]) -> int:
        """Return a point's new coordinate from those in the host's set; `Rule.sums` on integers."""
        return sum(values)

    def start(self, points: Iterable[Point]) -> Position:
        """Return the points of a start that matter."""
        return self._shifted(minimal(points))

    def after(self, points: Position, axes: Axes, axis: int) -> Position | None:
        """Return the position after a move; None if a coordinate would exceed 2^59."""
        following = played(points, axes, axis, self.total)
        if max(point[axis] for point in following) > MAX_COORDINATE:
            return None
        return self._position_after(following, points, axes, axis)

    def ending(self, points: Position) -> Ending | None:
        """Return how the game ended in a position, or None; see `Ending`."""
        return "resolved" if len(points) == 1 else None

    def sets(self, points: Position) -> Iterator[Axes]:
        """Return the sets that the host may choose, smaller ones first."""
        yield from search_actions(self.spec.dimension, self.spec.least_axes)

    def centre(self, points: Position, axes: Axes) -> Axes:
        """Return the set that is played for one that the host wants."""
        return axes

    def answers(self, points: Position, axes: Axes) -> Axes:
        """Return the axes of a set that the agent may choose."""
        return axes

    def key(self, points: Position) -> Any:
        """Return one form for all positions with the same value."""
        return tuple(sorted(points))

    def _position_after(
        self, after: list[Point], points: Position, axes: Axes, axis: int
    ) -> Position:
        """Return the position of the points after a move, whose position was ``points``."""
        return self.start(after)

    def _shifted(self, kept: Position) -> Position:
        """Return the points, repositioned if the game asks for it."""
        return tuple(shifted(kept, corner(kept)) if self.spec.reposition else kept)


class OrderedPolyhedra(OrderedRule):
    """Rule ``polyhedra``; see `resgym.game.state.Polyhedra`."""

    def total(self, values: list[int]) -> int:
        """See `OrderedRule`."""
        return sum(values) - self.spec.unit

    def ending(self, points: Position) -> Ending | None:
        """See `OrderedRule`."""
        return "below_one" if min(map(sum, points)) < self.spec.unit else None

    def sets(self, points: Position) -> Iterator[Axes]:
        """See `OrderedRule`."""
        for axes in super().sets(points):
            if all(sum([point[k] for k in axes]) >= self.spec.unit for point in points):
                yield axes

    def key(self, points: Position) -> Any:
        """See `OrderedRule`; the order of the axes does not matter either."""
        return tuple(sorted(zip(*sorted(zip(*points, strict=True)), strict=True)))


class WeightedPosition(Position):
    """The points of rule ``thom`` with weights and distinguished point (None once it is lost)."""

    weights: Point
    distinguished: Point | None


class OrderedThom(OrderedRule):
    """Rule ``thom``; see `resgym.game.state.Thom`.

    The last point of a start is the distinguished one.
    """

    def __init__(self, spec: GameSpec, weights: Iterable[int] | None = None) -> None:
        super().__init__(spec)
        weights = [1] * spec.dimension if weights is None else weights
        values = list(weights) if isinstance(weights, Iterable) else []
        if len(values) != spec.dimension:
            raise ValueError(
                f"weights must be {spec.dimension} integers (dimension), got {shown(weights)}"
            )
        self.weights = check_coordinates(values, "weights")

    def start(self, points: Iterable[Point]) -> WeightedPosition:
        """See `OrderedRule`."""
        points = list(points)
        return self._weighted(points, self.weights, points[-1])

    # Positions of this rule are `WeightedPosition`s.

    def _position_after(
        self, after: list[Point], points: Any, axes: Axes, axis: int
    ) -> WeightedPosition:
        weights = tuple(
            weight - points.weights[axis] if k in axes and k != axis else weight
            for k, weight in enumerate(points.weights)
        )
        return self._weighted(after, weights, after[points.index(points.distinguished)])

    def ending(self, points: Any) -> Ending | None:
        """See `OrderedRule`."""
        return "no_contribution" if points.distinguished is None else super().ending(points)

    def answers(self, points: Any, axes: Axes) -> Axes:
        """See `OrderedRule`."""
        least = min(points.weights[k] for k in axes)
        return tuple(k for k in axes if points.weights[k] == least)

    def key(self, points: Any) -> Any:
        """See `OrderedRule`."""
        return super().key(points), points.weights, points.distinguished

    def _weighted(self, points: list[Point], weights: Point, marked: Point) -> WeightedPosition:
        kept = minimal(points)
        position = WeightedPosition(self._shifted(kept))
        position.weights = weights
        position.distinguished = position[kept.index(marked)] if marked in kept else None
        return position


def ordered_rule(spec: GameSpec, weights: Iterable[int] | None = None) -> OrderedRule:
    """Return the rule of a game; ``weights``, 1 by default, are for rule ``thom``."""
    # The default rule without torch, which takes a second to import.
    kind = OrderedRule if spec.rule == "basic" else spec.kind.ordered
    return kind(spec, weights)


def _zeillinger(points: Position) -> Axes:
    """See `resgym.players.scripted`."""

    def key(v: list[int]) -> tuple[int, int]:
        low, high = min(v), max(v)
        return high - low, v.count(low) + v.count(high)

    differences = (
        [a - b for a, b in zip(one, other, strict=True)] for one, other in combinations(points, 2)
    )
    v = min(differences, key=key)  # the first of equal ones
    first, second = v.index(min(v)), v.index(max(v))
    return (0, 1) if first == second else tuple(sorted((first, second)))


PLAIN_HOSTS: dict[str, Callable[[Position], Axes]] = {
    "all_coord": lambda points: tuple(range(len(points[0]))),
    "zeillinger": _zeillinger,
}
"""Each function returns the host's set in an unfinished position.

The points are in the order in which they were typed, as in `resgym.players.asking.Seat`."""
