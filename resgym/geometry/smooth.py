"""Charts that end where the strict transform is smooth, and centres along which it is worst.

The exponents of the root and the rays of a chart decide that, for polynomials that are
nondegenerate on the compact faces of their Newton polyhedron. ``docs/resolution.md`` gives the
criterion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from resgym.game.exact import Ending, OrderedRule, Position, corner, minimal, shifted
from resgym.game.spec import Axes, GameSpec, Point, check_choice
from resgym.geometry.fan import (
    Cone,
    compact_cells,
    degenerate_faces,
    divided,
    eliminate,
    path_rays,
    strict_transform,
    subsets,
)
from resgym.polynomials.monomials import Exponents
from resgym.texts import Names
from resgym.trees.growth import Centres, ResolutionTree, Stop, resolution_tree


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
        self.root: Position = ()

    def start(self, points: Iterable[Point]) -> Position:
        """See `OrderedRule`."""
        self.root = minimal(points)
        return self._chart(self.root, path_rays(self.spec.dimension, ()))

    def _position_after(
        self, after: Iterable[Point], points: Any, axes: Axes, axis: int
    ) -> Position:
        return self._chart(after, divided(points.rays, axes, axis))

    def ending(self, points: Any) -> Ending | None:
        """See `OrderedRule`."""
        ended = super().ending(points)
        if not ended and self.stop and is_smooth(self.root, points.rays, self.stop == "crossings"):
            return self.stop
        return ended

    def sets(self, points: Any) -> Iterator[Axes]:
        """See `OrderedRule`."""
        places = strict_transform(self.root, points.rays)
        order = min(map(sum, places))
        for axes in super().sets(points):
            along = min(sum(point[k] for k in axes) for point in places)
            if self.centres == "all" or along == order:
                yield axes

    def centre(self, points: Position, axes: Axes) -> Axes:
        """See `OrderedRule`."""
        return next(each for each in self.sets(points) if {*axes} <= {*each})

    def key(self, points: Any) -> Cone:
        """See `OrderedRule`; the order of the axes does not matter."""
        return tuple(sorted(points.rays))

    def _chart(self, points: Iterable[Point], rays: Cone) -> ChartPosition:
        position = ChartPosition(super().start(points))
        position.rays = rays
        return position


def chart_rule(
    position: Exponents, rule: OrderedRule, stop: Stop | None, centres: Centres
) -> ChartRule:
    """Return the rule of a tree with ``stop`` or ``centres``; see `resgym.resolution_tree`."""
    check_choice("centres", centres, ["all", "equimultiple"])
    check_choice("stop", stop or "smooth", ["smooth", "crossings"])
    if type(rule) is not OrderedRule:
        raise ValueError(f"stop and centres are for rule 'basic', got rule {rule.spec.rule!r}")
    if stop is not None:
        cells = compact_cells(full_tree(position))
        # What is known of the coefficients must not show that ``stop`` does not hold.
        if bad := ["an ideal"] if position.ideal else degenerate_faces(cells, position):
            raise ValueError(f"stop is for nondegenerate polynomials, got {bad[0]}")
    return ChartRule(rule.spec, stop, centres)


def is_smooth(points: Sequence[Point], rays: Cone, crossings: bool = False) -> bool:
    """Return whether the strict transform is smooth at all points of a chart over the origin.

    Args:
        points: the minimal exponents of the root.
        rays: those of the chart.
        crossings: also, whether it has normal crossings with the exceptional divisors. Then
            coordinate hyperplanes of the root that divide it count as divisors, not as parts of it.
    """
    support = strict_transform(points, rays)
    lowest = corner(support)
    if crossings:
        support = shifted(support, lowest)
    for axes in subsets(len(rays)):
        # Where x_j = 0 for these axes only: is it over the origin, and in the strict transform?
        over = all(map(any, zip(*(rays[j] for j in axes), strict=True)))
        if over and all(any(a[j] for j in axes) for a in support):
            linear = (
                [a for a in support if a[j] == sum(a[k] for k in axes) == 1]
                for j in axes
                if not crossings or (sum(rays[j]) == 1 and not lowest[j])
            )
            if _vanish_together(linear):
                return False
    return True


def _vanish_together(systems: Iterable[Sequence[Point]]) -> bool:
    """Whether Laurent polynomials with these exponents have a common zero, for generic ones.

    Those without exponents do not count. They have none if and only if the Newton polytopes of some
    of them have a sum whose dimension is below their number (Bernstein, Minkowski).
    """
    steps = [shifted(others, first) for first, *others in filter(None, systems)]
    return all(
        len(eliminate(chain(*(steps[k] for k in chosen)))[0]) >= len(chosen)
        for chosen in subsets(len(steps))
    )


def isolated_fault(points: Sequence[Point], variables: Names) -> str:
    """Return why polynomials with these exponents are not isolated at 0; empty where they are.

    Without a linear term, on every coordinate plane as many partial derivatives as it has
    dimensions must not vanish (Kouchnirenko).
    """
    size = len(variables)
    for axes in subsets(size) if min(map(sum, points)) > 1 else ():
        found = sum(
            any(p[i] and sum(p) - sum(p[a] for a in axes) == (i not in axes) for p in points)
            for i in range(size)
        )
        if found < len(axes):
            return (
                f"along {', '.join(variables[axis] for axis in axes)} at least {len(axes)} of the "
                f"partial derivatives must not vanish, got {found}"
            )
    return ""


def full_tree(points: Exponents) -> ResolutionTree:
    """Return a tree without practical limits.

    Raises:
        ValueError: it would be cut, or the exponents are too large for what one does with it.
    """
    tree = resolution_tree(points, max_depth=10**4, max_nodes=10**6)
    if not tree.complete or max(chain(*points)) > 100_000:
        raise ValueError(
            "points must have exponents of at most 100000, and a tree by zeillinger of at most "
            "10000 moves and a million charts, got more"
        )
    return tree
