"""The toric geometry of a tree: charts as cones, divisors, the fan and the cells of its leaves.

A chart is a cone spanned by D rays, which are the unit vectors at the root. Coordinate i of a point
of the chart is the product <p, ray i>, where p is the point at the root. ``docs/mathematics.md``
gives the proof.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import chain, combinations, compress
from typing import NamedTuple

from resgym.game.exact import corner, minimal, shifted
from resgym.game.spec import Axes, Point
from resgym.polynomials.monomials import Exponents, factored, is_degenerate, sympy_poly
from resgym.texts import Names, Rows, Table, monomial_pretty, variable_pretty
from resgym.trees.growth import ResolutionTree

Ray = tuple[int, ...]
Cone = tuple[Ray, ...]


def dot(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the scalar product."""
    return sum(map(int.__mul__, one, other))


def total_of(rays: Iterable[Ray]) -> Ray:
    """Return the sum of rays."""
    return tuple(map(sum, zip(*rays, strict=True)))


def least(ray: Sequence[int], points: Iterable[Sequence[int]]) -> int:
    """Return the least scalar product of a ray with points."""
    return min(dot(ray, point) for point in points)


def volume(points: Iterable[Sequence[int]]) -> int:
    """Return n! times the volume of the convex hull of points in Z^n; 0 where the hull is flat.

    The points are placed one by one, and each adds the simplices over the facets that it sees.
    """
    vectors = sorted({(1, *point) for point in points})
    start, total = eliminate(vectors)
    n = len(vectors[0]) - 1
    if len(start) <= n:
        return 0
    centre = total_of(start)

    @cache
    def side(facet: Sequence[Point], vector: Point) -> int:
        found, size = eliminate([*facet, vector])
        return size if len(found) > n else 0

    facets, total = {*combinations(start, n)}, abs(total)
    for vector in vectors:
        seen = {each for each in facets if side(each, vector) * side(each, centre) < 0}
        total += sum(abs(side(each, vector)) for each in seen)
        ridges = Counter(ridge for each in seen for ridge in combinations(each, n - 1))
        outer = (ridge for ridge, times in ridges.items() if times == 1)
        facets = facets - seen | {tuple(sorted((*ridge, vector))) for ridge in outer}
    return total


def facet_order(ray: Sequence[int], points: Sequence[Sequence[int]]) -> int:
    """Return N if a ray is the normal of a facet with N > 0; else 0.

    The facet is projected along the axes on which the normal is 0.
    """
    order = least(ray, points)
    face = [tuple(compress(point, ray)) for point in points if dot(ray, point) == order]
    return order if len(eliminate(face)[0]) == len(face[0]) else 0


def eliminate(vectors: Iterable[Point]) -> tuple[list[Point], int]:
    """Return the vectors of Z^n that do not depend on earlier ones, and their determinant.

    The number is the determinant only if there are n of them. This is Bareiss's fraction-free
    elimination: every division is exact.
    """
    independent = []
    rows = dict[int, list[int]]()  # the eliminated vectors, by the column of the pivot
    pivot = 1
    for vector in vectors:
        rest = list(vector)
        previous = 1
        for column, row in rows.items():
            factor = rest[column]
            pivot = row[column]
            rest = [(a * pivot - factor * b) // previous for a, b in zip(rest, row, strict=True)]
            previous = pivot
        if any(rest):
            independent.append(vector)
            column = next(i for i, entry in enumerate(rest) if entry)
            rows[column] = rest
            pivot = rest[column]
    inversions = sum(one > other for one, other in combinations(rows, 2))
    return independent, (-1) ** inversions * pivot


class Divisor(NamedTuple):
    """An exceptional divisor of the blow-ups of a tree.

    Attributes:
        ray: D integers >= 0, the new ray of the star subdivision.
        multiplicity: N, the least product of the ray with a point of the start: the order of the
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
    """Return the rays of the chart after some moves, each a host's set and the agent's axis."""
    rays = tuple(tuple(int(i == j) for j in range(dimension)) for i in range(dimension))
    for axes, axis in moves:
        rays = divided(rays, axes, axis)
    return rays


def divided(rays: Cone, axes: Sequence[int], axis: int) -> Cone:
    """Return the rays after a move."""
    return (*rays[:axis], total_of(rays[each] for each in axes), *rays[axis + 1 :])


def in_chart(point: Sequence[int], rays: Cone) -> Ray:
    """Return the exponents of a monomial of the root in the coordinates of a chart."""
    return tuple(dot(ray, point) for ray in rays)


def strict_transform(points: Sequence[Point], rays: Cone) -> list[Point]:
    """Return the points of the root in a chart, less what its exceptional divisors take out.

    A divisor that is a coordinate hyperplane of the root belongs to the strict transform.
    """
    taken = tuple(least(ray, points) if sum(ray) > 1 else 0 for ray in rays)
    return shifted([in_chart(point, rays) for point in points], taken)


def chart_rays(tree: ResolutionTree, first: Cone | None = None) -> list[Cone]:
    """Return the D rays of every chart's cone, in order; ``first`` are those of the root."""
    found = [first or path_rays(len(tree.variables), ())]
    for chart in tree.charts[1:]:
        assert chart.parent
        assert chart.axis is not None
        found.append(divided(found[chart.parent - 1], tree[chart.parent].axes or (), chart.axis))
    return found


def old_coordinates(rays: Cone, names: Names) -> list[str]:
    """Format the substitution of a chart, such as ``x = xz``: the root's variables in its own."""
    return [
        f"{variable_pretty(name)} = {monomial_pretty(column, names)}"
        for name, column in zip(names, zip(*rays, strict=True), strict=True)
    ]


def tree_divisors(tree: ResolutionTree) -> Divisors:
    """Return the exceptional divisors of a tree, each once, in the order of its charts."""
    made: dict[Ray, list[int]] = {}
    for chart, rays in zip(tree, chart_rays(tree), strict=True):
        if chart.axes:
            made.setdefault(divided(rays, chart.axes, 0)[0], []).append(chart.number)
    divisors, points = [], minimal(tree.start)
    for ray, charts in made.items():
        order, total = least(ray, points), sum(ray)
        pole = Fraction(-total, order) if order else None
        divisors.append(Divisor(ray, order, total, pole, tuple(charts)))
    return Divisors(divisors)


def log_canonical_threshold(tree: ResolutionTree) -> Fraction | float:
    """Return the log canonical threshold of the start's monomial ideal at the origin (Howald).

    It is the least log_discrepancy / multiplicity over all rays of a tree that is resolved in every
    chart, and infinite for the unit ideal. A polynomial that is nondegenerate for its Newton
    polyhedron has this threshold, or 1 if that is less.

    Raises:
        ValueError: a branch was cut, or ended before one monomial was left.
    """
    rays, points = tree_fan(tree).rays, minimal(tree.start)
    for chart in tree:
        if (chart.ending or "resolved") != "resolved":
            raise ValueError(
                f"tree must be resolved in every chart, got one with the ending {chart.ending} "
                f"after {chart.depth} moves; leave out stop, or raise max_depth or max_nodes"
            )
    return min((Fraction(sum(v), n) for v in rays if (n := least(v, points))), default=math.inf)


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


def tree_fan(tree: ResolutionTree) -> Fan:
    """Return the cones of the charts where a tree ends.

    Raises:
        ValueError: the tree follows one agent only, so the cones do not fill the orthant.
    """
    if any(chart.children and len(chart.children) != len(chart.axes or ()) for chart in tree):
        raise ValueError("tree must follow all answers of the agent, got the record of one game")
    places: dict[Ray, int] = {}
    cones, charts = [], []
    for chart, rays in zip(tree, chart_rays(tree), strict=True):
        if not chart.children:
            cones.append(tuple(places.setdefault(ray, len(places)) for ray in rays))
            charts.append(chart.number)
    return Fan(tuple(places), tuple(cones), tuple(charts))


Face = tuple[Point, ...]
"""The points of a position on a face of its Newton polyhedron."""


class Cell(NamedTuple):
    """An open cone of positive weights, all with the same face.

    Attributes:
        rays: what spans the cone: a part of a basis of Z^D.
        face: the points where its weights are least.
        local: these points in the other coordinates of the chart, D less the number of rays.
        volume: volume of the face, in units of the smallest lattice simplex.
    """

    rays: Cone
    face: Face
    local: Face
    volume: int

    @property
    def weights(self) -> Ray:
        """A weight of the cell."""
        return total_of(self.rays)


def compact_cells(tree: ResolutionTree) -> Iterator[Cell]:
    """Cut the weights with positive entries into cells.

    A weight is in the chart that one enters on the way from it to a generic weight, so that each is
    in one chart, also where the charts do not glue. Cells whose face has fewer dimensions than
    there are other coordinates are left out; every compact face has a cell that is not.
    """
    points, dimension = minimal(tree.start), len(tree.variables)
    # On no wall: the determinants of walls and unit vectors are at most 2^depth.
    generic = tuple(2 ** (axis * (tree.depth + 2)) for axis in range(dimension))
    for chart, rays in zip(tree, chart_rays(tree), strict=True):
        if chart.children:
            continue
        swapped = ([*rays[:axis], generic, *rays[axis + 1 :]] for axis in range(dimension))
        beyond = {axis for axis, each in enumerate(swapped) if eliminate(each)[1] < 0}
        places = {point: in_chart(point, rays) for point in points}
        lowest = corner(places.values())
        for axes in subsets(dimension):
            cone = tuple(rays[axis] for axis in axes)
            if beyond <= {*axes} and all(map(any, zip(*cone, strict=True))):
                face = [p for p in points if all(places[p][axis] == lowest[axis] for axis in axes)]
                others = [axis for axis in range(dimension) if axis not in axes]
                local = tuple(tuple(places[point][axis] for axis in others) for point in face)
                if len(face) > len(others) and (size := volume(local)):
                    yield Cell(cone, tuple(face), local, size)


def subsets(dimension: int) -> Iterator[Axes]:
    """All sets of axes but the empty one, small ones first."""
    axes = range(dimension)
    return chain.from_iterable(combinations(axes, size) for size in range(1, dimension + 1))


def degenerate_faces(cells: Iterable[Cell], start: Exponents) -> list[str]:
    """Return the polynomials of the compact faces on which a polynomial is degenerate.

    Args:
        cells: those of a tree of it.
        start: the polynomial; without coefficients it counts as generic.
    """
    return [
        factored(sympy_poly({point: terms[point] for point in face}, start.variables))
        for terms in start.generators[:1]
        for face, local in {cell.face: cell.local for cell in cells}.items()
        # A simplex never is: a change of coordinates gives the sum of its variables and 1.
        if len(face) > len(local[0]) + 1
        and is_degenerate({at: terms[p] for at, p in zip(local, face, strict=True)})
    ]
