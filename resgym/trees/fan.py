"""The toric geometry of a tree: cones of charts, exceptional divisors, the fan of the leaves.

A chart is a cone spanned by D rays, which are the unit vectors at the root. Coordinate i of a point
of the chart is the product <p, ray i>, where p is the point at the root. ``docs/mathematics.md``
gives the proof.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

from resgym.game.formulas import monomial_pretty, variable_pretty
from resgym.tables import Rows, Table
from resgym.trees.data import ChartTree
from resgym.trees.lattice import dot, least

Ray = tuple[int, ...]
Cone = tuple[Ray, ...]


class Divisor(NamedTuple):
    """An exceptional divisor of the blow-ups of a tree.

    Attributes:
        ray: D integers >= 0, the new ray of the star subdivision.
        multiplicity: N, the least product of the ray with a point of the root: the order of the
            ideal along the divisor.
        log_discrepancy: the sum of the ray's entries.
        pole: the candidate pole -log_discrepancy / N of the topological zeta function; None where
            N is 0.
        charts: numbers of the charts whose move makes this ray, in order; several charts may make
            the same ray.
    """

    ray: Ray
    multiplicity: int
    log_discrepancy: int
    pole: Fraction | None
    charts: tuple[int, ...]


class Divisors(Table, tuple[Divisor, ...]):
    """The exceptional divisors of a tree."""

    def table_rows(self) -> Rows:
        """See `Table`."""
        rows = [[*map(str, each[:3]), str(each.pole or "none")] for each in self]
        return [("ray", "multiplicity", "log discrepancy", "candidate pole"), *rows]


def path_rays(dimension: int, moves: Sequence[tuple[Sequence[int], int]]) -> Cone:
    """Return the rays of the chart that moves, each a set and one of its axes, lead to."""
    rays: Cone = tuple(tuple(int(i == j) for j in range(dimension)) for i in range(dimension))
    for axes, axis in moves:
        rays = divided(rays, axes, axis)
    return rays


def divided(rays: Cone, axes: Sequence[int], axis: int) -> Cone:
    """Return the rays after a move."""
    new = tuple(map(sum, zip(*(rays[each] for each in axes), strict=True)))
    return (*rays[:axis], new, *rays[axis + 1 :])


def in_chart(point: Sequence[int], rays: Cone) -> Ray:
    """Return the exponents of a monomial of the root in the coordinates of a chart."""
    return tuple(dot(ray, point) for ray in rays)


def chart_rays(tree: ChartTree, first: Cone | None = None) -> list[Cone]:
    """Return the D rays of every chart's cone, in order; ``first`` are those of the root."""
    found = [path_rays(len(tree.variables), ()) if first is None else first]
    for chart in tree.charts[1:]:
        assert chart.parent is not None
        assert chart.axis is not None
        found.append(divided(found[chart.parent - 1], tree[chart.parent].axes or (), chart.axis))
    return found


def old_coordinates(rays: Cone, names: Sequence[str]) -> list[str]:
    """Format the substitution of a chart, such as ``x = xz``: the root's variables in its own."""
    return [
        f"{variable_pretty(name)} = {monomial_pretty(column, names)}"
        for name, column in zip(names, zip(*rays, strict=True), strict=True)
    ]


def tree_divisors(tree: ChartTree) -> Divisors:
    """Return the exceptional divisors of a tree, each once, in the order of its charts."""
    made: dict[Ray, list[int]] = {}
    rays = chart_rays(tree)
    for chart in tree:
        if chart.children:
            child = tree[chart.children[0]]
            made.setdefault(rays[child.number - 1][child.axis or 0], []).append(chart.number)
    divisors = []
    for ray, charts in made.items():
        order, total = least(ray, tree.root.points), sum(ray)
        pole = Fraction(-total, order) if order else None
        divisors.append(Divisor(ray, order, total, pole, tuple(charts)))
    return Divisors(divisors)


def log_canonical_threshold(tree: ChartTree) -> Fraction | float:
    """Return the log canonical threshold of the root's monomial ideal at the origin (Howald).

    It is the least log_discrepancy / multiplicity over all rays of a tree that is resolved in every
    chart, and infinite for the unit ideal. A polynomial that is nondegenerate for its Newton
    polyhedron has this threshold, or 1 if that is less.

    Raises:
        ValueError: a branch was cut, or ended before one monomial was left.
    """
    rays = tree_fan(tree).rays
    for chart in tree:
        if chart.ending not in (None, "resolved"):
            raise ValueError(
                f"tree must be resolved in every chart, got one with the ending {chart.ending} "
                f"after {chart.depth} moves; raise max_depth or max_nodes, and leave out stop"
            )
    orders = ((sum(ray), least(ray, tree.root.points)) for ray in rays)
    return min((Fraction(total, order) for total, order in orders if order), default=math.inf)


@dataclass(frozen=True, repr=False, eq=False)
class Fan:
    """The cones where the branches of a tree end; together they fill the orthant.

    Attributes:
        rays: the rays of all cones, D integers each, without repetition.
        cones: for each cone, the indices of its D rays.
        charts: for each cone, the number of its chart.
    """

    rays: tuple[Ray, ...]
    cones: tuple[tuple[int, ...], ...]
    charts: tuple[int, ...]

    def __repr__(self) -> str:
        glued = "a fan" if self.glues else f"{len(self.faults)} faces do not match"
        return f"Fan({len(self.rays)} rays, {len(self.cones)} cones, {glued})"

    @cached_property
    def faults(self) -> tuple[tuple[int, ...], ...]:
        """Facets inside the orthant (as indices of `rays`) that belong to one cone only.

        A host chooses in every chart independently, so a wall may be subdivided on one side only.
        Without such facets the cones meet facet to facet, hence face to face, so they form a fan:
        ``docs/mathematics.md`` has the proof.
        """
        count = Counter(
            facet for cone in self.cones for facet in combinations(sorted(cone), len(cone) - 1)
        )
        return tuple(
            facet
            for facet, cones in count.items()
            if cones == 1 and all(map(any, zip(*(self.rays[i] for i in facet), strict=True)))
        )

    @property
    def glues(self) -> bool:
        """Whether the charts of the leaves belong to one toric variety."""
        return not self.faults


def tree_fan(tree: ChartTree) -> Fan:
    """Return the cones of the charts where a tree ends.

    Raises:
        ValueError: the tree follows one agent only, so the cones do not fill the orthant.
    """
    if any(chart.children and len(chart.children) != len(chart.axes or ()) for chart in tree):
        raise ValueError("tree must follow all answers of the agent, got the record of one game")
    places: dict[Ray, int] = {}
    cones, charts = [], []
    for chart, rays in zip(tree.charts, chart_rays(tree), strict=True):
        if not chart.children:
            cones.append(tuple(places.setdefault(ray, len(places)) for ray in rays))
            charts.append(chart.number)
    return Fan(tuple(places), tuple(cones), tuple(charts))
