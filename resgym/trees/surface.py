"""Resolution graphs of surface singularities, from the rays of a tree.

M. Oka, On the resolution of the hypersurface singularities (1987); see ``docs/invariants.md``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import gcd
from typing import Any, NamedTuple

from resgym.tables import Rows, Table
from resgym.trees.fan import Ray, chart_rays
from resgym.trees.invariants import facet_size, tree_invariants
from resgym.trees.lattice import dot, eliminate, least


class Curve(NamedTuple):
    """An exceptional curve of the resolution of a surface.

    Attributes:
        ray: the divisor of the tree that it lies on; several curves may share one.
        self_intersection: its self-intersection number, below 0.
        genus: its genus.
    """

    ray: Ray
    self_intersection: int
    genus: int


Node = tuple[Ray, int]
"""A ray, and the number of a curve on its divisor."""


@dataclass(frozen=True)
class SurfaceGraph(Table):
    """Exceptional curves of a good resolution of a surface, and where they meet.

    Attributes:
        curves: the curves.
        edges: pairs of indices of curves, once for each point in which the two meet.
    """

    curves: tuple[Curve, ...]
    edges: tuple[tuple[int, int], ...]

    def matrix(self) -> list[list[int]]:
        """Return the intersection matrix, which is negative definite."""
        found = [[0] * len(self.curves) for _ in self.curves]
        for place, curve in enumerate(self.curves):
            found[place][place] = curve.self_intersection
        for one, other in self.edges:
            found[one][other] += 1
            found[other][one] += 1
        return found

    def to_dot(self) -> str:
        """Return Graphviz source; curves show their self-intersection, and a genus above 0."""
        lines = ["graph resolution {", "  node [shape=circle];"]
        for place, (_, number, genus) in enumerate(self.curves):
            label = f"{number}, g = {genus}" if genus else number
            lines.append(f'  c{place} [label="{label}"];')
        lines += [f"  c{one} -- c{other};" for one, other in self.edges]
        return "\n".join([*lines, "}", ""])

    def table_rows(self) -> Rows:
        """See `Table`."""
        rows: list[Sequence[str]] = [("curve", "ray", "self-intersection", "genus", "meets")]
        for place, (curve, row) in enumerate(zip(self.curves, self.matrix(), strict=True)):
            others = [str(other) for other, times in enumerate(row) for _ in range(times)]
            rows.append((str(place), *map(str, curve), ", ".join(others)))
        return rows


def surface_graph(tree: Any, minimal: bool = True) -> SurfaceGraph:
    """Return the resolution graph of a surface singularity, for generic coefficients (Oka).

    Args:
        tree: a tree as for `tree_invariants`, in three variables.
        minimal: contract curves until the good resolution is minimal; else return the curves on
            the divisors of the tree.

    Raises:
        ValueError: the tree has not three variables, is none for `tree_invariants`, or the
            singularity is not isolated.
    """
    if len(tree.variables) != 3:
        raise ValueError(f"tree must have 3 variables, got {len(tree.variables)}")
    found = tree_invariants(tree)
    found.milnor_number  # noqa: B018  # refuses what is not isolated
    rays = sorted(
        {ray for cone in chart_rays(tree) for ray in cone},
        key=lambda ray: [Fraction(entry, sum(ray)) for entry in ray],
    )
    orders = {ray: least(ray, found.points) for ray in rays}
    edges: list[list[Node]] = []
    around = defaultdict[Node, list[Ray]](list)
    borders: Counter[Ray] = Counter()
    for face in found.faces:
        if len(eliminate((1, *point) for point in face)[0]) != 2:
            continue
        # The rays that are least on this edge, from the facet on one side to that on the other.
        chain = [ray for ray in rays if all(dot(ray, point) == orders[ray] for point in face)]
        length = gcd(*map(int.__sub__, max(face), min(face)))
        borders.update({chain[0]: length, chain[-1]: length})
        for copy in range(length):
            nodes = [(ray, copy if ray in chain[1:-1] else 0) for ray in chain]
            for one, other in pairwise(nodes):
                around[one].append(other[0])
                around[other].append(one[0])
                edges += [[one, other]] * (all(one[0]) and all(other[0]))
    curves = {}
    for (ray, copy), others in sorted(around.items()):
        if all(ray):
            inside = facet_size(ray, found.points)[1] - borders[ray]
            genus = inside // 2 + 1 if ray in borders else 0
            curves[ray, copy] = Curve(ray, -sum(other[0] for other in others) // ray[0], genus)
    if minimal:
        _contract(curves, edges)
    places = {node: place for place, node in enumerate(curves)}
    ends = (sorted(places[node] for node in edge) for edge in edges)
    return SurfaceGraph(tuple(curves.values()), tuple(sorted((one, other) for one, other in ends)))


def _contract(curves: dict[Node, Curve], edges: list[list[Node]]) -> None:
    """Contract rational curves with self-intersection -1 that meet others in at most two points."""

    def others(node: Node) -> list[Node]:
        return [edge[edge[0] == node] for edge in edges if node in edge]

    while node := next(
        (
            node
            for node, (_, number, genus) in curves.items()
            if (number, genus) == (-1, 0) and len({*others(node)}) == len(others(node)) <= 2
        ),
        None,
    ):
        ends = others(node)
        for end in ends:
            ray, number, genus = curves[end]
            curves[end] = Curve(ray, number + 1, genus)
        edges[:] = [edge for edge in edges if node not in edge] + [ends] * (len(ends) == 2)
        del curves[node]
