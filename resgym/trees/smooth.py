"""Charts in which the strict transform is smooth over the origin, and centres along it.

Both are decided by the exponents of the root and the rays of a chart. They hold for polynomials
that are nondegenerate on the compact faces of their Newton polyhedron. ``docs/resolution.md`` gives
the criterion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import sub
from typing import Any, Literal

from resgym.game.exact import OrderedRule, Position, ordered_rule
from resgym.game.spec import Axes, GameSpec, check_choice
from resgym.polynomials.monomials import Point
from resgym.trees.fan import Cone, divided, eliminate, in_chart, path_rays, subsets

Stop = Literal["smooth", "crossings"]
Centres = Literal["all", "equimultiple"]


class ChartPosition(tuple[Point, ...]):
    """The points of a chart, with the rays of its cone."""

    rays: Cone


class ChartRule(OrderedRule):
    """The basic rule, with charts that also end where geometry is content, or with fewer centres.

    Args:
        spec: the game.
        stop: ``smooth``, ``crossings`` (see `is_smooth`) or None.
        centres: ``all``, or ``equimultiple`` for those along which the strict transform has the
            same multiplicity as at the origin of the chart.
    """

    def __init__(self, spec: GameSpec, stop: Stop | None, centres: Centres) -> None:
        super().__init__(spec)
        self.stop, self.centres = stop, centres
        self.root: Sequence[Point] = ()

    def start(self, points: Iterable[Point]) -> Position:
        """See `OrderedRule`."""
        self.root = self._kept(points)
        return self._placed(self.root, path_rays(self.spec.dimension, ()))

    def after(self, points: Any, axes: Axes, axis: int) -> Position | None:
        """See `OrderedRule`."""
        following = self._following(points, axes, axis)
        if following is None:
            return None
        return self._placed(following, divided(points.rays, axes, axis))

    def ending(self, points: Any) -> str | None:
        """See `OrderedRule`."""
        ended = super().ending(points)
        if ended or self.stop is None:
            return ended
        return self.stop if is_smooth(self.root, points.rays, self.stop == "crossings") else None

    def sets(self, points: Position) -> Iterator[Axes]:
        """See `OrderedRule`."""
        lowest = [*map(min, zip(*points, strict=True))]
        every = range(len(lowest))

        def order(axes: Iterable[int]) -> int:
            return min(sum(point[k] - lowest[k] for k in axes) for point in points)

        for axes in super().sets(points):
            if self.centres == "all" or order(axes) == order(every):
                yield axes

    def centre(self, points: Position, axes: Axes) -> Axes:
        """See `OrderedRule`."""
        return next(each for each in self.sets(points) if {*axes} <= {*each})

    def key(self, points: Any) -> Cone:
        """See `OrderedRule`; the order of the axes does not matter."""
        return tuple(sorted(points.rays))

    def _placed(self, points: Iterable[Point], rays: Cone) -> ChartPosition:
        position = ChartPosition(super().start(points))
        position.rays = rays
        return position


def chart_rule(
    spec: GameSpec, weights: Sequence[int] | None, stop: Stop | None, centres: Centres
) -> OrderedRule:
    """Return the rule of a tree; see `resgym.resolution_tree`."""
    check_choice("centres", centres, ["all", "equimultiple"])
    if stop is None and centres == "all":
        return ordered_rule(spec, weights)
    check_choice("stop", stop or "smooth", ["smooth", "crossings"])
    if spec.rule != "basic" or weights is not None:
        raise ValueError(f"stop and centres are for rule 'basic', got rule {spec.rule!r}")
    return ChartRule(spec, stop, centres)


def is_smooth(points: Sequence[Point], rays: Cone, crossings: bool = False) -> bool:
    """Return whether the strict transform is smooth at all points of a chart over the origin.

    Args:
        points: the minimal exponents of the root.
        rays: those of the chart.
        crossings: it must also have normal crossings with the exceptional divisors and the
            coordinate hyperplanes that divide the total transform.
    """
    places = [in_chart(point, rays) for point in points]
    lowest = tuple(map(min, zip(*places, strict=True)))
    support = [tuple(map(sub, place, lowest)) for place in places]
    free = [j for j, ray in enumerate(rays) if not crossings or (sum(ray) == 1 and not lowest[j])]
    for axes in subsets(len(rays)):
        # Where x_j = 0 for these axes only: is it over the origin, and in the strict transform?
        over = all(map(any, zip(*(rays[j] for j in axes), strict=True)))
        if over and all(any(a[j] for j in axes) for a in support):
            linear = (
                [a for a in support if a[j] == sum(a[k] for k in axes) == 1]
                for j in axes
                if j in free
            )
            if _vanish_together([*filter(None, linear)]):
                return False
    return True


def _vanish_together(systems: Sequence[Sequence[Point]]) -> bool:
    """Whether Laurent polynomials with these exponents have a common zero, for generic ones.

    They have none if and only if the Newton polytopes of some of them have a sum whose dimension is
    below their number (Bernstein, Minkowski).
    """
    steps = [[tuple(map(sub, a, some[0])) for a in some[1:]] for some in systems]
    return all(
        len(eliminate(chain(*(steps[k] for k in chosen)))[0]) >= len(chosen)
        for chosen in subsets(len(steps))
    )
