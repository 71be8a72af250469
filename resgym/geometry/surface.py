"""Resolution graphs of surface singularities, from the rays of a tree.

M. Oka, On the resolution of the hypersurface singularities (1987); see ``docs/invariants.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import chain, pairwise
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from resgym.geometry.fan import Cell, Ray, dot, least
from resgym.pictures.diagram import AREA, BORDER, INK, MUTED, TICK_SIZE
from resgym.pictures.shapes import (
    Circle,
    Line,
    Picture,
    Point,
    Shape,
    Text,
    picture_to_svg,
    text_width,
)
from resgym.texts import Rows, Table

STEP = 70.0
"""Pixels between neighbours."""
CAPTION = ("circle: self-intersection [genus], N, ν", "line: a point where two curves meet")


class Curve(NamedTuple):
    """An exceptional curve of the resolution of a surface.

    Attributes:
        ray: the divisor of the tree that it lies on; several curves may share one.
        self_intersection: its self-intersection number, below 0.
        genus: its genus.
        multiplicity: N of the divisor: the order of the polynomial along it.
        log_discrepancy: ν of the divisor, the sum of the ray's entries. The curve has the
            discrepancy ν - N - 1 on the surface.
    """

    ray: Ray
    self_intersection: int
    genus: int
    multiplicity: int
    log_discrepancy: int


class Seifert(NamedTuple):
    """The Seifert invariants of a star: a central curve, and arms of rational curves.

    Attributes:
        genus: the genus of the central curve.
        self_intersection: its self-intersection number.
        arms: a pair of coprime integers for each arm, in order: alpha/omega is the continued
            fraction b_1 - 1/(b_2 - 1/...), where -b_1, -b_2, ... are the self-intersection numbers
            from the centre outwards.
    """

    genus: int
    self_intersection: int
    arms: tuple[tuple[int, int], ...]

    @property
    def euler_number(self) -> Fraction:
        """The self-intersection of the central curve plus the sum of omega/alpha, below 0."""
        shares = (Fraction(omega, alpha) for alpha, omega in self.arms)
        return sum(shares, Fraction(self.self_intersection))


Node = tuple[Ray, int]
"""A ray, and the number of a curve on its divisor."""


@dataclass(frozen=True)
class SurfaceGraph(Table):
    """Exceptional curves of a good resolution of a surface, and where they meet.

    Attributes:
        curves: the curves.
        edges: pairs of indices of curves, once for each point in which the two meet.
        title: what it is the graph of.
    """

    curves: tuple[Curve, ...]
    edges: tuple[tuple[int, ...], ...]
    title: str

    def matrix(self) -> list[list[int]]:
        """Return the intersection matrix, which is negative definite."""
        found = np.diag([curve.self_intersection for curve in self.curves])
        for one, other in self.edges:
            found[one, other] += 1
            found[other, one] += 1
        return [*found.tolist()]

    def seifert(self) -> Seifert:
        """Return the Seifert invariants.

        Raises:
            ValueError: the graph is not a star, or it is a chain of rational curves without centre.
        """
        ends = [_neighbours(self.edges, place) for place in range(len(self.curves))]
        centres = [k for k, each in enumerate(ends) if len(each) > 2 or self.curves[k].genus]
        if len(centres) != 1 or len(self.edges) >= len(ends):
            raise ValueError("graph must be a star with a centre, got another one")
        centre, arms = centres[0], []
        for here in ends[centre]:
            before, numbers = centre, list[int]()
            while here != before:
                numbers.insert(0, self.curves[here].self_intersection)
                before, here = here, next((each for each in ends[here] if each != before), here)
            share = reduce(lambda rest, number: -1 / (number + rest), numbers, Fraction(0))
            arms.append((share.denominator, share.numerator))
        curve = self.curves[centre]
        return Seifert(curve.genus, curve.self_intersection, tuple(sorted(arms)))

    def _spots(self) -> list[Point]:
        """Pixels of the curves: distances are close to those in the graph (stress majorization).

        Places in the plane are complex numbers until the end.
        """
        size = len(self.curves)
        meets = np.reshape(self.matrix(), (size, size)) > 0
        distances = np.where(meets, 1, size) * (1 - np.eye(size))
        for place in range(size):  # paths by way of this curve may be shorter (Floyd-Warshall)
            distances = np.minimum(distances, distances[:, place, None] + distances[place])
        # Begin with different places, which depend on the graph alone.
        spots = np.linalg.eigh(distances)[1] @ 0.5j ** np.arange(size)
        for _ in range(200):
            gaps = spots[:, None] - spots
            # The identity avoids 0 / 0 for the gap from a curve to itself.
            spots = (distances * gaps / (abs(gaps) + np.eye(size))).sum(1) / size
        if meets.sum() == 2 * (size - 1):  # a tree: draw its arms straight, with equal steps
            inner = meets.sum(1) == 2
            means = np.where(inner[:, None], meets / 2, 0)
            spots = np.linalg.solve(np.eye(size) - means, np.where(inner, 0, spots))
        x, y = (STEP * (each - each.min(initial=0)) + 40 for each in (spots.real, spots.imag))
        return [*zip(x, y, strict=True)]

    def _labels(self) -> list[tuple[str, str]]:
        return [
            (f"{number} [{genus}]" if genus else str(number), f"{n}, {nu}")
            for _, number, genus, n, nu in self.curves
        ]

    def to_dot(self) -> str:
        """Return Graphviz source; curves show self-intersection, ``[genus]`` above 0, N and ν."""
        labels = enumerate(map(r"\n".join, self._labels()))
        curves = [f'  c{place} [label="{each}"];' for place, each in labels]
        edges = [f"  c{one} -- c{other};" for one, other in self.edges]
        first = ["graph resolution {", "  node [shape=circle];"]
        return "\n".join([*first, *curves, *edges, "}", ""])

    def to_svg(self) -> str:
        """Return a picture with a caption; labels are those of `to_dot`."""
        spots, shapes = self._spots(), list[Shape]()
        for one, other in dict.fromkeys(self.edges):
            for wide in range(self.edges.count((one, other)) - 1, -1, -2):  # equal ones: parallels
                for colour, width in ((INK, 6 * wide + 1.5), ("#ffffff", max(6 * wide - 1.5, 0))):
                    shapes.append(Line(spots[one], spots[other], colour, width))
        for (x, y), (label, numbers) in zip(spots, self._labels(), strict=True):
            shapes += [
                Circle((x, y), 24, AREA, BORDER),
                Text((x, y), label, INK, 12, "middle"),
                Text((x, y + 13), numbers, MUTED, TICK_SIZE, "middle"),
            ]
        width, height = (int(max(each)) + 50 for each in zip((0, 0), *spots, strict=True))
        for line in (self.title, *CAPTION):
            shapes.append(Text((16, height), line, INK))
            width, height = max(width, int(text_width(line, 11)) + 32), height + 18
        return picture_to_svg(Picture(width, height, shapes, self.title))

    def _repr_html_(self) -> str:
        return self.to_svg() + super()._repr_html_()

    def table_rows(self) -> Rows:
        """See `Table`."""
        heading = ("curve", "ray", "self-intersection", "genus", "N", "ν", "meets")
        rows: list[Sequence[str]] = [heading]
        for place, curve in enumerate(self.curves):
            meets = ", ".join(map(str, sorted(_neighbours(self.edges, place))))
            rows.append((str(place), *map(str, curve), meets))
        return rows


def _neighbours(links: Iterable[tuple[Any, ...]], node: Any) -> list[Any]:
    """The other ends of the links of a node."""
    return [pair[pair[0] == node] for pair in links if node in pair]


def surface_graph(
    points: Sequence[Ray], faces: Collection[Cell], rays: Sequence[Ray], minimal: bool, name: str
) -> SurfaceGraph:
    """Return the resolution graph of an isolated surface singularity (Oka).

    Args:
        points: exponents, three each.
        faces: a cell of each compact face.
        rays: the rays of a tree.
        minimal: contract curves until the good resolution is minimal; else return the curves on
            the divisors of the tree.
        name: that of the singularity, for the title.
    """
    rays = sorted(rays, key=lambda ray: [Fraction(entry, sum(ray)) for entry in ray])
    orders = {ray: least(ray, points) for ray in rays}
    links = list[tuple[Node, Node]]()
    borders: Counter[Ray] = Counter()
    areas = {cell.rays[0]: cell.volume for cell in faces if len(cell.rays) == 1}
    for face in (cell.face for cell in faces if len(cell.rays) == 2):
        # The rays that are least on this edge, from the facet on one side to that on the other.
        fan = [ray for ray in rays if all(dot(ray, point) == orders[ray] for point in face)]
        length = gcd(*map(int.__sub__, max(face), min(face)))
        borders.update({fan[0]: length, fan[-1]: length})
        for copy in range(length):
            links += pairwise((ray, copy * (ray in fan[1:-1])) for ray in fan)
    curves = {}
    for node in sorted({*chain.from_iterable(links)}):
        ray, _ = node
        if all(ray):
            others = sum(other[0] for other, _ in _neighbours(links, node))
            inside = areas.get(ray, 0) - borders[ray]
            genus = inside // 2 + 1 if ray in borders else 0
            curves[node] = Curve(ray, -others // ray[0], genus, orders[ray], sum(ray))
    links = [pair for pair in links if curves.keys() >= {*pair}]
    if minimal:
        links = _contracted(curves, links)
    nodes = [*curves]
    edges = sorted(tuple(sorted(map(nodes.index, pair))) for pair in links)
    title = f"{'Minimal good' if minimal else 'Good'} resolution of {name}"
    return SurfaceGraph(tuple(curves.values()), tuple(edges), title)


def _contracted(
    curves: dict[Node, Curve], links: list[tuple[Node, Node]]
) -> list[tuple[Node, Node]]:
    """Contract rational curves with self-intersection -1 that meet others in at most two points."""
    todo = [*curves]
    while todo:
        node = todo.pop(0)
        ends = _neighbours(links, node)
        if curves[node][1:3] == (-1, 0) and len({*ends}) == len(ends) <= 2:
            links = [pair for pair in links if node not in pair]
            links += [(*ends,)] * (len(ends) == 2)
            for end in ends:
                number = curves[end].self_intersection + 1
                curves[end] = curves[end]._replace(self_intersection=number)
            del curves[node]
            todo = [*curves]
    return links
