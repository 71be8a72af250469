"""Where the points of a position are in a picture: axes with ticks, in the plane and in space."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from resgym.game.exact import prune
from resgym.render.facets import Corner, facets_in_box
from resgym.render.shapes import Circle, Line, Point, Polygon, Shape, Text

Vector = tuple[int, ...]
Points = Sequence[Vector]

INK = "#1d2733"
MUTED = "#66727f"
FAINT = "#d5dbe1"
AREA = "#dfeaf6"
FLOOR = "#f4f6f8"
BORDER = "#7ba3cc"
POINT = "#1f5fa8"
# The host's axes have thick lines and bold names too, not only a colour.
CHOSEN = "#d1540a"

TICK_SIZE = 10.0
NAME_SIZE = 14.0
LABEL_SIZE = 11.0
LARGEST_EXACT = 10**6


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float


def short(value: int) -> str:
    """Format a number in full up to a million, then with three digits: ``1e9``."""
    if value <= LARGEST_EXACT:
        return str(value)
    return f"{value:.3g}".replace("e+0", "e").replace("e+", "e")


@dataclass(frozen=True)
class Scale:
    """An axis that shows the values from ``base`` to ``base + span``.

    It starts at 0 unless the points would then lie on one another.
    """

    base: int
    span: int

    @classmethod
    def of(cls, values: Sequence[int]) -> Scale:
        """Return the scale that shows these values."""
        low, high = min(values), max(values)
        if high > 100 and 0 < (high - low) * 8 < high:
            margin = max(1, (high - low) // 3)
            return cls(low - margin, high - low + 2 * margin)
        return cls(0, high + max(1, high // 8))

    def at(self, value: int) -> float:
        """Return where on the axis a value is, from 0 to 1."""
        # Whole numbers first: near 2^59 neighbouring values are equal as floats.
        return (value - self.base) / self.span

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Return places in 0..1 and labels (values minus ``base``) of at most this many steps."""
        step = 1
        while self.span > step * most:
            step = step * 5 // 2 if str(step)[0] == "2" else step * 2
        return [(value / self.span, short(value)) for value in range(0, self.span + 1, step)]

    def name(self, name: str) -> str:
        """Return the axis's name, with what is subtracted from its labels."""
        return f"{name} − {self.base}" if self.base else name


def polyhedron_vertices(points: Points) -> list[Vector]:
    """Return the vertices of conv(S) + the positive orthant; in the plane from left to right."""
    import torch  # loading it takes longer than solving a small position

    from resgym.game.newton import newton_vertices

    kept = prune(points)
    vertices, (count,) = newton_vertices(torch.tensor([kept]), torch.tensor([len(kept)]))
    return [tuple(vertex) for vertex in vertices[0, : int(count)].tolist()]


def plane_diagram(
    points: Points, chosen: Sequence[int], names: Sequence[str], area: Box
) -> list[Shape]:
    """Two axes, the Newton polyhedron shaded, its vertices filled and other points hollow.

    The chosen axes are thick; tick labels lie outside the area.
    """
    scales = [Scale.of(values) for values in zip(*points, strict=True)]

    def place(x: float, y: float) -> Point:
        return (
            area.left + x * (area.right - area.left),
            area.bottom - y * (area.bottom - area.top),
        )

    vertices = polyhedron_vertices(points)
    border = [place(*shares_of(scales, vertex)) for vertex in vertices]
    border = [(border[0][0], area.top), *border, (area.right, border[-1][1])]
    shapes: list[Shape] = [Polygon((*border, place(1, 1)), AREA)]
    for share, label in scales[0].ticks(5):
        x, y = place(share, 0)
        shapes.append(Line((x, area.top), (x, y), FAINT, 0.6))
        shapes.append(Text((x, y + 17), label, MUTED, TICK_SIZE, "middle"))
    for share, label in scales[1].ticks(6):
        x, y = place(0, share)
        shapes.append(Line((x, y), (area.right, y), FAINT, 0.6))
        shapes.append(Text((x - 8, y + 4), label, MUTED, TICK_SIZE, "end"))
    shapes += [Line(start, end, BORDER, 2.0) for start, end in itertools.pairwise(border)]
    ways = (place(1, 0), (0, 34), "end"), (place(0, 1), (-8, -8), "start")
    shapes += _axes(scales, names, chosen, place(0, 0), ways)
    return shapes + _points(points, vertices, [place(*shares_of(scales, each)) for each in points])


def space_diagram(
    points: Points, chosen: Sequence[int], names: Sequence[str], area: Box
) -> list[Shape]:
    """Three axes seen from above a corner, each point with a line down to the floor.

    The faces of the Newton polyhedron are shaded as far as the axes go, and are transparent.
    Bounded faces are darker, with thick edges. The rest is as in `plane_diagram`.
    """
    scales = [Scale.of(values) for values in zip(*points, strict=True)]
    unit = min((area.bottom - area.top) / 1.58, (area.right - area.left) / 1.55)
    origin = (area.left + 0.55 * unit, area.top + 0.9 * unit)

    def place(x: float, y: float, z: float) -> Point:
        # Three unequal axes: in a true isometric view (1, 1, 1) would lie on the origin.
        return (
            origin[0] + (y - 0.55 * x) * unit,
            origin[1] + (0.5 * x + 0.18 * y - 0.9 * z) * unit,
        )

    ground = (place(0, 0, 0), place(1, 0, 0), place(1, 1, 0), place(0, 1, 0))
    shapes: list[Shape] = [Polygon(ground, FLOOR)]
    # Numbers stand at their axis, beside the floor, and lines lead on from there. They are written
    # last, so that no face lies over them.
    ticks: list[Shape] = []
    for scale, corners, (right, down), anchor in (
        (scales[0], lambda share: ((share, 0, 0), (share, 1, 0)), (-8, 3), "end"),
        (scales[1], lambda share: ((0, share, 0), (1, share, 0)), (3, -6), "middle"),
        (scales[2], lambda share: ((1, 0, share), (0, 0, share), (0, 1, share)), (-6, 4), "end"),
    ):
        for share, label in scale.ticks(5):
            spots = [place(*corner) for corner in corners(share)]
            shapes += [Line(*ends, FAINT, 0.6) for ends in itertools.pairwise(spots)]
            if share:
                spot = (spots[0][0] + right, spots[0][1] + down)
                ticks.append(Text(spot, label, MUTED, TICK_SIZE, anchor))  # type: ignore[arg-type]
    vertices = polyhedron_vertices(points)
    shapes += [*_faces([shares_of(scales, vertex) for vertex in vertices], place), *ticks]
    ways = (
        (place(1, 0, 0), (-6, 20), "end"),
        (place(0, 1, 0), (8, 4), "start"),
        (place(0, 0, 1), (0, -8), "middle"),
    )
    shapes += _axes(scales, names, chosen, place(0, 0, 0), ways)
    places = []
    for point in points:
        shares = shares_of(scales, point)
        top, floor = place(*shares), place(shares[0], shares[1], 0)
        if top[1] < floor[1] - 1:
            shapes += [Line(top, floor, BORDER, 1.2, dashed=True), Circle(floor, 2, BORDER, BORDER)]
        places.append(top)
    return shapes + _points(points, vertices, places)


def _points(
    points: Points,
    vertices: Points,
    places: Sequence[Point],
) -> list[Shape]:
    """The points and their numbers in the list of monomials, above all lines."""
    shapes: list[Shape] = []
    for number, (point, (x, y)) in enumerate(zip(points, places, strict=True), 1):
        shapes.append(Circle((x, y), 5, POINT if point in vertices else "#ffffff", POINT))
        shapes.append(Text((x + 7, y - 5), f"#{number}", INK, LABEL_SIZE))
    return shapes


def shares_of(scales: Sequence[Scale], point: Vector) -> tuple[float, ...]:
    """Return where a point is on the axes, from 0 to 1 each."""
    return tuple(scale.at(value) for scale, value in zip(scales, point, strict=True))


def _faces(
    vertices: Sequence[Corner],
    place: Callable[[float, float, float], Point],
) -> list[Shape]:
    """The faces, the unbounded ones first, and then their edges."""
    areas: list[Shape] = []
    edges: dict[frozenset[Point], Shape] = {}
    for facet in sorted(facets_in_box(vertices), key=lambda facet: facet.compact):
        outline = [(place(*corner), corner in vertices) for corner in facet.corners]
        colour, opacity = (BORDER, 0.4) if facet.compact else (AREA, 0.55)
        areas.append(Polygon(tuple(spot for spot, _ in outline), colour, opacity))
        for (start, one), (end, other) in itertools.pairwise([*outline, outline[0]]):
            edges[frozenset((start, end))] = Line(start, end, BORDER, 2.0 if one and other else 0.8)
    return areas + list(edges.values())


def _axes(
    scales: Sequence[Scale],
    names: Sequence[str],
    chosen: Sequence[int],
    start: Point,
    ways: Iterable[tuple[Point, Point, Any]],
) -> list[Shape]:
    """The axes to their ends, and their names beside these; the host's are thick and bold."""
    shapes = list[Shape]()
    for axis, (end, (right, down), anchor) in enumerate(ways):
        bold, name = axis in chosen, scales[axis].name(names[axis])
        colour, width = (CHOSEN, 4.0) if bold else (INK, 1.3)
        spot = end[0] + right, end[1] + down
        shapes += [
            Line(start, end, colour, width),
            Text(spot, name, colour, NAME_SIZE, anchor, bold),
        ]
    return shapes
