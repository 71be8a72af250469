"""Where the points of a position are in a picture: axes with ticks, in the plane and in space."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import dist
from typing import NamedTuple

from resgym.game.plain import prune
from resgym.render.facets import facets_in_box
from resgym.render.shapes import Circle, Line, Polygon, Shape, Text, text_width

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
LARGEST_EXACT = 10**6


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Return whether the two have an inner point in common."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def lies_in(self, other: Box) -> bool:
        """Return whether the box lies within the other."""
        across = other.left <= self.left and self.right <= other.right
        return across and other.top <= self.top and self.bottom <= other.bottom


@dataclass
class Diagram:
    """The drawn axes and the places of the points.

    Attributes:
        shapes: in the order of drawing.
        places: pixels of every point.
        taken: boxes that no label may cover.
        lines: boxes along thin lines that labels should not cover.
    """

    shapes: list[Shape] = field(default_factory=list)
    places: list[tuple[float, float]] = field(default_factory=list)
    taken: list[Box] = field(default_factory=list)
    lines: list[Box] = field(default_factory=list)

    def write(self, text: Text) -> None:
        """Add text and the box that it takes."""
        self.shapes.append(text)
        width = text_width(text.text, text.size)
        left = text.position[0] - {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor] * width
        base = text.position[1]
        self.taken.append(Box(left, base - text.size, left + width, base + 0.25 * text.size))


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


def polyhedron_vertices(points: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the vertices of conv(S) + the positive orthant; in the plane from left to right."""
    import torch  # loading it takes longer than solving a small position

    from resgym.game.newton import newton_vertices

    kept = prune(points)
    vertices, (count,) = newton_vertices(torch.tensor([kept]), torch.tensor([len(kept)]))
    return [tuple(vertex) for vertex in vertices[0, : int(count)].tolist()]


def plane_diagram(
    points: Sequence[tuple[int, ...]], chosen: Sequence[int], names: Sequence[str], area: Box
) -> Diagram:
    """Draw two axes, with the Newton polyhedron shaded, vertices filled, other points hollow.

    The chosen axes are thick; tick labels lie outside the area.
    """
    diagram = Diagram()
    shapes = diagram.shapes
    across, up = (Scale.of([point[axis] for point in points]) for axis in (0, 1))

    def place(point: tuple[int, ...]) -> tuple[float, float]:
        return (
            area.left + across.at(point[0]) * (area.right - area.left),
            area.bottom - up.at(point[1]) * (area.bottom - area.top),
        )

    vertices = polyhedron_vertices(points)
    border = [place(vertex) for vertex in vertices]
    border = [(border[0][0], area.top), *border, (area.right, border[-1][1])]
    shapes.append(Polygon((*border, (area.right, area.top)), AREA))
    for share, label in across.ticks(5):
        x = area.left + share * (area.right - area.left)
        shapes.append(Line((x, area.top), (x, area.bottom), FAINT, 0.6))
        diagram.write(Text((x, area.bottom + 17), label, MUTED, TICK_SIZE, "middle"))
    for share, label in up.ticks(6):
        y = area.bottom - share * (area.bottom - area.top)
        shapes.append(Line((area.left, y), (area.right, y), FAINT, 0.6))
        diagram.write(Text((area.left - 8, y + 4), label, MUTED, TICK_SIZE, "end"))
    for start, end in itertools.pairwise(border):
        shapes.append(Line(start, end, BORDER, 2.0))
    corner = (area.left, area.bottom)
    for axis, end in enumerate([(area.right, area.bottom), (area.left, area.top)]):
        _axis(diagram, corner, end, axis in chosen)
        diagram.taken.extend(_along(corner, end))
    _name(diagram, (area.right, area.bottom + 34), across.name(names[0]), 0 in chosen, "end")
    _name(diagram, (area.left - 8, area.top - 8), up.name(names[1]), 1 in chosen, "start")
    diagram.places = [place(point) for point in points]
    for point, centre in zip(points, diagram.places, strict=True):
        fill = POINT if point in vertices else "#ffffff"
        shapes.append(Circle(centre, 5, fill, POINT))
    return diagram


def space_diagram(
    points: Sequence[tuple[int, ...]], chosen: Sequence[int], names: Sequence[str], area: Box
) -> Diagram:
    """Draw three axes seen from above a corner, with a line from each point to the floor.

    The faces of the Newton polyhedron are shaded as far as the axes go, and are transparent.
    Bounded faces are darker, with thick edges. The rest is as in `plane_diagram`.
    """
    diagram = Diagram()
    shapes = diagram.shapes
    scales = [Scale.of([point[axis] for point in points]) for axis in range(3)]
    unit = min((area.bottom - area.top) / 1.58, (area.right - area.left) / 1.55)
    origin = (area.left + 0.55 * unit, area.top + 0.9 * unit)

    def place(x: float, y: float, z: float) -> tuple[float, float]:
        # Three unequal axes: in a true isometric view (1, 1, 1) would lie on the origin.
        return (
            origin[0] + (y - 0.55 * x) * unit,
            origin[1] + (0.5 * x + 0.18 * y - 0.9 * z) * unit,
        )

    shapes.append(Polygon((place(0, 0, 0), place(1, 0, 0), place(1, 1, 0), place(0, 1, 0)), FLOOR))
    # Numbers are beside the floor, with lines that lead on from there. They are drawn last, so that
    # no face covers them.
    ticks = []
    for scale, most, corners, (right, down), anchor in (
        (scales[0], 5, lambda share: ((share, 0, 0), (share, 1, 0)), (-8, 3), "end"),
        (scales[1], 5, lambda share: ((0, share, 0), (1, share, 0)), (3, -6), "middle"),
        (scales[2], 6, lambda share: ((1, 0, share), (0, 0, share), (0, 1, share)), (-6, 4), "end"),
    ):
        for share, label in scale.ticks(most):
            spots = [place(*corner) for corner in corners(share)]
            shapes.extend(Line(*ends, FAINT, 0.6) for ends in itertools.pairwise(spots))
            if share:
                spot = (spots[0][0] + right, spots[0][1] + down)
                ticks.append(Text(spot, label, MUTED, TICK_SIZE, anchor))  # type: ignore[arg-type]
    for x, y in ((1, 0), (0, 1)):
        shapes.append(Line(place(x, y, 0), place(x, y, 1), FAINT, 0.6))
    vertices = polyhedron_vertices(points)
    _draw_polyhedron(diagram, [shares_of(scales, vertex) for vertex in vertices], place)
    for tick in ticks:
        diagram.write(tick)
    ends = [place(1, 0, 0), place(0, 1, 0), place(0, 0, 1)]
    for axis, end in enumerate(ends):
        _axis(diagram, place(0, 0, 0), end, axis in chosen)
        # A label may cross a thin axis, not a thick one.
        kept_clear = diagram.taken if axis in chosen else diagram.lines
        kept_clear.extend(_along(place(0, 0, 0), end))
    places = ((-6, 20, "end"), (8, 4, "start"), (0, -8, "middle"))
    for axis, (right, down, anchor) in enumerate(places):
        position = (ends[axis][0] + right, ends[axis][1] + down)
        _name(diagram, position, scales[axis].name(names[axis]), axis in chosen, anchor)
    for point in points:
        shares = shares_of(scales, point)
        top, floor = place(*shares), place(shares[0], shares[1], 0)
        if top[1] < floor[1] - 1:
            shapes.append(Line(top, floor, BORDER, 1.2, dashed=True))
            diagram.lines.extend(_along(top, floor))
            shapes.append(Circle(floor, 2, BORDER, BORDER))
        diagram.places.append(top)
    # Points are drawn after the lines, so that no line crosses a point.
    for point, centre in zip(points, diagram.places, strict=True):
        colours = (POINT, "#ffffff") if point in vertices else ("#ffffff", POINT)
        shapes.append(Circle(centre, 5, *colours))
    return diagram


def shares_of(scales: Sequence[Scale], point: tuple[int, ...]) -> tuple[float, float, float]:
    """Return where a point is on three axes, from 0 to 1 each."""
    x, y, z = (scale.at(value) for scale, value in zip(scales, point, strict=True))
    return x, y, z


def _draw_polyhedron(
    diagram: Diagram,
    vertices: Sequence[tuple[float, float, float]],
    place: Callable[[float, float, float], tuple[float, float]],
) -> None:
    """Draw the faces, unbounded ones first, and then their edges."""
    outlines = []
    for facet in sorted(facets_in_box(vertices), key=lambda facet: facet.compact):
        outline = [(place(*corner), corner) for corner in facet.corners]
        outlines.append(outline)
        colour, opacity = (BORDER, 0.4) if facet.compact else (AREA, 0.55)
        diagram.shapes.append(Polygon(tuple(spot for spot, _ in outline), colour, opacity))
    ends = set(vertices)
    drawn = set()
    for outline in outlines:
        for (start, one), (end, other) in itertools.pairwise([*outline, outline[0]]):
            if frozenset((start, end)) not in drawn:
                drawn.add(frozenset((start, end)))
                bounded = one in ends and other in ends
                diagram.shapes.append(Line(start, end, BORDER, 2.0 if bounded else 0.8))


def _axis(
    diagram: Diagram, start: tuple[float, float], end: tuple[float, float], chosen: bool
) -> None:
    diagram.shapes.append(Line(start, end, CHOSEN if chosen else INK, 4.0 if chosen else 1.3))


def _along(start: tuple[float, float], end: tuple[float, float]) -> list[Box]:
    steps = max(1, int(dist(start, end) / 6))
    boxes = []
    for step in range(steps + 1):
        x, y = (a + (b - a) * step / steps for a, b in zip(start, end, strict=True))
        boxes.append(Box(x - 2, y - 2, x + 2, y + 2))
    return boxes


def _name(
    diagram: Diagram, position: tuple[float, float], name: str, chosen: bool, anchor: str
) -> None:
    colour = CHOSEN if chosen else INK
    diagram.write(Text(position, name, colour, NAME_SIZE, anchor, bold=chosen))  # type: ignore[arg-type]
