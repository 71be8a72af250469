"""The rules on lists of points in Python integers; moves keep the order of the points.

Positions are tuples of points in the order in which they were typed, so a chart reads like the
polynomial that it comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import sub
from typing import Any

from resgym.game.plain import Position, played, prune, search_actions
from resgym.game.spec import MAX_COORDINATE, GameSpec, Point, check_coordinates
from resgym.game.spec import Axes as Axes


class OrderedRule:
    """The rule of a `GameSpec`; this class is the default rule."""

    def __init__(self, spec: GameSpec) -> None:
        self.spec = spec

    def start(self, points: Iterable[Point]) -> Position:
        """Return the points of a start that matter."""
        return self._shifted(self._kept(points))[0]

    def after(self, points: Position, axes: Axes, axis: int) -> Position | None:
        """Return the position after a move; None if a coordinate would exceed 2^59."""
        following = self._following(points, axes, axis)
        return None if following is None else self.start(following)

    def ending(self, points: Position) -> str | None:
        """Return how the game ended in a position, or None; see `resgym.trees.data.Ending`."""
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

    def _following(self, points: Position, axes: Axes, axis: int) -> list[Point] | None:
        taken = self.spec.unit if self.spec.rule == "polyhedra" else 0
        following = played(points, axes, axis, taken)
        return None if max(point[axis] for point in following) > MAX_COORDINATE else following

    def _kept(self, points: Iterable[Point]) -> list[Point]:
        given = dict.fromkeys(points)
        least = set(prune(given))
        return [point for point in given if point in least]

    def _shifted(self, kept: list[Point], marked: Point = ()) -> tuple[Position, Point]:
        """Return the points and one more, repositioned together."""
        if not self.spec.reposition:
            return tuple(kept), marked
        lowest = tuple(map(min, zip(*kept, strict=True)))
        moved = [tuple(map(sub, point, lowest)) for point in (*kept, marked)]
        return tuple(moved[:-1]), moved[-1]


class OrderedPolyhedra(OrderedRule):
    """Rule ``polyhedra``; see `resgym.game.variants.Polyhedra`."""

    def ending(self, points: Position) -> str | None:
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
    marked: Point | None


class OrderedThom(OrderedRule):
    """Rule ``thom``; see `resgym.game.variants.Thom`.

    The last point of a start is the distinguished one.
    """

    def __init__(self, spec: GameSpec, weights: Iterable[int] | None = None) -> None:
        super().__init__(spec)
        given = [1] * spec.dimension if weights is None else list(weights)
        self.weights = check_coordinates(given, "weights")
        if len(given) != spec.dimension:
            raise ValueError(
                f"weights must be {spec.dimension} integers (dimension), got {len(given)}"
            )

    def start(self, points: Iterable[Point]) -> WeightedPosition:
        """See `OrderedRule`."""
        points = list(points)
        return self._weighted(points, self.weights, points[-1])

    # Positions of this rule are `WeightedPosition`s.

    def after(self, points: Any, axes: Axes, axis: int) -> WeightedPosition | None:
        """See `OrderedRule`."""
        following = self._following(points, axes, axis)
        if following is None:
            return None
        weights = tuple(
            weight - points.weights[axis] if k in axes and k != axis else weight
            for k, weight in enumerate(points.weights)
        )
        return self._weighted(following, weights, following[points.index(points.marked)])

    def ending(self, points: Any) -> str | None:
        """See `OrderedRule`."""
        return "no_contribution" if points.marked is None else super().ending(points)

    def answers(self, points: Any, axes: Axes) -> Axes:
        """See `OrderedRule`."""
        least = min(points.weights[k] for k in axes)
        return tuple(k for k in axes if points.weights[k] == least)

    def key(self, points: Any) -> Any:
        """See `OrderedRule`."""
        return super().key(points), points.weights, points.marked

    def _weighted(self, points: list[Point], weights: Point, marked: Point) -> WeightedPosition:
        kept = self._kept(points)
        shifted, last = self._shifted(kept, marked)
        position = WeightedPosition(shifted)
        position.weights = weights
        position.marked = last if marked in kept else None
        return position


def ordered_rule(spec: GameSpec, weights: Iterable[int] | None = None) -> OrderedRule:
    """Return the rule of a game; ``weights``, 1 by default, are for rule ``thom``."""
    if spec.rule == "thom":
        return OrderedThom(spec, weights)
    if weights is not None:
        raise ValueError(f"weights are for rule 'thom', got rule {spec.rule!r}")
    return OrderedPolyhedra(spec) if spec.rule == "polyhedra" else OrderedRule(spec)
