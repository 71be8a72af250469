"""Where the points of a position are in a picture: in the plane, in space, and as data to turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from resgym.game.exact import is_vertex, prune
from resgym.pictures.shapes import Circle, Line, Point, Polygon, Shape, Text
from resgym.texts import Data, Names

# For coordinates from 0 to 1. A face that is flatter than this at an edge is drawn without it.
TOLERANCE = 1e-9

Corner = tuple[float, ...]


class Facet(NamedTuple):
    """A two-dimensional face of conv(S) + R^3_{>=0}, cut at the box [0, 1]^3.

    Attributes:
        corners: in order around the face.
        compact: whether the face is bounded without the box.
    """

    corners: tuple[Corner, ...]
    compact: bool


def facets_in_box(vertices: Sequence[Corner]) -> list[Facet]:
    """Return all faces, the unbounded ones first.

    The vertices of the polyhedron have coordinates from 0 to 1. Each face is spanned by three of
    the vertices and directions of the axes. Its normal has no negative entry, since the polyhedron
    contains everything above it. A face that contains the direction of an axis extends to the side
    of the box. Floating point is enough for drawing.
    """
    points = np.array(vertices, dtype=float)
    found = {}
    for base in range(len(points)):
        for row, normal in zip(*_spanned(points, base), strict=True):
            if row.tobytes() not in found:
                found[row.tobytes()] = _facet(points, row, normal)
    return sorted(found.values(), key=lambda facet: facet.compact)


def _spanned(points: np.ndarray, base: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the faces that a point spans with two of the later points [V, 3] or the three axes.

    Returns:
        rows: bool [F, V + 3]: which points lie on a face, and which axes have its direction; a
            face may occur several times.
        normals: [F, 3], of length 1.
    """
    rays = np.concatenate([points[base + 1 :] - points[base], np.eye(3)])
    one, other = np.array([*combinations(rays, 2)]).swapaxes(0, 1)
    normals = np.cross(one, other)
    lengths = np.linalg.norm(normals, axis=1)
    normals *= np.where(normals.sum(1) < 0, -1, 1)[:, None]
    some = (lengths > TOLERANCE) & (normals.min(1) >= -TOLERANCE * lengths)
    normals = normals[some] / lengths[some, None]
    heights = normals @ points.T
    on = heights <= heights.min(1, keepdims=True) + TOLERANCE
    # A plane that has nothing below it, so it has all three axes.
    lowest = on[:, base]
    return np.concatenate([on, normals <= TOLERANCE], 1)[lowest], normals[lowest]


def _facet(points: np.ndarray, row: np.ndarray, normal: np.ndarray) -> Facet:
    """Return the face of a row: the points on it, then the axes with its direction."""
    corners = set(map(tuple, points[row[:-3]].tolist()))
    free = row[-3:].nonzero()[0].tolist()
    for axis in free:
        corners |= {(*c[:axis], 1.0, *c[axis + 1 :]) for c in corners}
    # Seen along the axis closest to the normal, around the middle.
    right, up = (axis for axis in range(3) if axis != normal.argmax())
    x, y = (sum(c[axis] for c in corners) / len(corners) for axis in (right, up))
    around = sorted(corners, key=lambda c: math.atan2(c[up] - y, c[right] - x))
    return Facet(tuple(around), not free)


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


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float


class Scale(NamedTuple):
    """An axis that shows the values from ``base`` to ``base + span``."""

    base: int
    span: int

    def at(self, value: int) -> float:
        """Return where on the axis a value is, from 0 to 1."""
        # Whole numbers first: near 2^59 neighbouring values are equal as floats.
        return (value - self.base) / self.span

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Return places in 0..1 and labels (values minus ``base``) of at most this many steps."""
        step = 1
        while self.span > step * most:
            step = step * 5 // 2 if str(step)[0] == "2" else step * 2
        return [(value / self.span, f"{value:g}") for value in range(0, self.span + 1, step)]

    def name(self, name: str) -> str:
        """Return the axis's name, with what is subtracted from its labels."""
        return f"{name} − {self.base}" if self.base else name


UNEQUAL = 4
"""Axes have one scale unless the largest span is more than this many times the smallest."""


def scales_of(points: Points) -> list[Scale]:
    """Return a scale for each axis: all of one span, unless that would squeeze the points.

    An axis starts at 0 unless the points would then lie on one another.
    """
    scales = []
    for values in zip(*points, strict=True):
        low, high = min(values), max(values)
        base, span = 0, high + max(1, high // 8)
        if high > 100 and 0 < (high - low) * 8 < high:
            margin = max(1, (high - low) // 3)
            base, span = low - margin, high - low + 2 * margin
        scales.append(Scale(base, span))
    most = max(scale.span for scale in scales)
    # On an axis of span 1 all values are 0.
    if most > UNEQUAL * min(scale.span for scale in scales if scale.span > 1 or most == 1):
        return scales
    return [scale._replace(span=most) for scale in scales]


def polyhedron_vertices(points: Points) -> list[Vector]:
    """Return the vertices of conv(S) + the positive orthant; in the plane from left to right."""
    kept = prune(points)
    return [point for point in kept if is_vertex(point, kept)]


def plane_diagram(points: Points, chosen: Sequence[int], names: Names, area: Box) -> list[Shape]:
    """Two axes, the Newton polyhedron shaded, its vertices filled and other points hollow.

    The chosen axes are thick; tick labels lie outside the area.
    """
    scales = scales_of(points)

    def place(x: float, y: float) -> Point:
        return (
            area.left + x * (area.right - area.left),
            area.bottom - y * (area.bottom - area.top),
        )

    vertices = polyhedron_vertices(points)
    border = [place(*shares_of(scales, vertex)) for vertex in vertices]
    border = [(border[0][0], area.top), *border, (area.right, border[-1][1])]
    shapes: list[Shape] = [Polygon([*border, place(1, 1)], AREA)]
    for share, label in scales[0].ticks(5):
        x, y = place(share, 0)
        shapes += [
            Line((x, area.top), (x, y), FAINT, 0.6),
            Text((x, y + 17), label, MUTED, TICK_SIZE, "middle"),
        ]
    for share, label in scales[1].ticks(6):
        x, y = place(0, share)
        shapes += [
            Line((x, y), (area.right, y), FAINT, 0.6),
            Text((x - 8, y + 4), label, MUTED, TICK_SIZE, "end"),
        ]
    shapes += [Line(start, end, BORDER, 2.0) for start, end in pairwise(border)]
    axis_ends = (place(1, 0), (0, 34), "end"), (place(0, 1), (-8, -8), "start")
    shapes += _axes(scales, names, chosen, place(0, 0), axis_ends)
    return shapes + _points(points, vertices, [place(*shares_of(scales, each)) for each in points])


def space_diagram(points: Points, chosen: Sequence[int], names: Names, area: Box) -> list[Shape]:
    """Three axes seen from above a corner, each point with a line down to the floor.

    The faces of the Newton polyhedron are shaded as far as the axes go, and are transparent.
    Bounded faces are darker, with thick edges. The rest is as in `plane_diagram`.
    """
    scales = scales_of(points)
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
    # For each axis: its scale, the corners of the grid line at a share of the axis, and where the
    # number stands, as an offset from the first corner. Faces must not cover the numbers, so these
    # are drawn later.
    ticks = []
    for scale, corners, (right, down), anchor in (
        (scales[0], lambda share: ((share, 0, 0), (share, 1, 0)), (-8, 3), "end"),
        (scales[1], lambda share: ((0, share, 0), (1, share, 0)), (3, -6), "middle"),
        (scales[2], lambda share: ((1, 0, share), (0, 0, share), (0, 1, share)), (-6, 4), "end"),
    ):
        for share, label in scale.ticks(5):
            spots = [place(*corner) for corner in corners(share)]
            shapes += [Line(*ends, FAINT, 0.6) for ends in pairwise(spots)]
            if share:
                spot = (spots[0][0] + right, spots[0][1] + down)
                ticks.append(Text(spot, label, MUTED, TICK_SIZE, anchor))
    vertices = polyhedron_vertices(points)
    shapes += [*_faces([shares_of(scales, vertex) for vertex in vertices], place), *ticks]
    axis_ends = (
        (place(1, 0, 0), (-6, 20), "end"),
        (place(0, 1, 0), (8, 4), "start"),
        (place(0, 0, 1), (0, -8), "middle"),
    )
    shapes += _axes(scales, names, chosen, place(0, 0, 0), axis_ends)
    tops = []
    for point in points:
        shares = shares_of(scales, point)
        top, floor = place(*shares), place(shares[0], shares[1], 0)
        if top[1] < floor[1] - 1:
            shapes += [Line(top, floor, BORDER, 1.2, dashed=True), Circle(floor, 2, BORDER, BORDER)]
        tops.append(top)
    return shapes + _points(points, vertices, tops)


def _points(points: Points, vertices: Points, places: Sequence[Point]) -> list[Shape]:
    """The points and their numbers in the list of monomials, above all lines."""
    shapes: list[Shape] = []
    for number, (point, (x, y)) in enumerate(zip(points, places, strict=True), 1):
        fill = POINT if point in vertices else "#ffffff"
        shapes += [Circle((x, y), 5, fill, POINT), Text((x + 7, y - 5), f"#{number}", INK)]
    return shapes


def shares_of(scales: Sequence[Scale], point: Vector) -> tuple[float, ...]:
    """Return where a point is on the axes, from 0 to 1 each."""
    return tuple(scale.at(value) for scale, value in zip(scales, point, strict=True))


def _faces(
    vertices: Sequence[Corner], place: Callable[[float, float, float], Point]
) -> list[Shape]:
    """The faces, the unbounded ones first, and then their edges."""
    areas = []
    edges = {}
    for facet in facets_in_box(vertices):
        outline = [(place(*corner), corner in vertices) for corner in facet.corners]
        colour, opacity = (BORDER, 0.4) if facet.compact else (AREA, 0.55)
        areas.append(Polygon([spot for spot, _ in outline], colour, opacity))
        for (start, one), (end, other) in pairwise([*outline, outline[0]]):
            edges[frozenset((start, end))] = Line(start, end, BORDER, 2.0 if one and other else 0.8)
    return [*areas, *edges.values()]


def _axes(
    scales: Sequence[Scale],
    names: Names,
    chosen: Sequence[int],
    start: Point,
    axis_ends: Iterable[tuple[Point, Point, str]],
) -> list[Shape]:
    """The axes from ``start``, with names at their ends; those of the host's set are bold.

    ``axis_ends`` holds for each axis its end, the offset of the name from it and the text anchor.
    """
    shapes = list[Shape]()
    for axis, (end, (right, down), anchor) in enumerate(axis_ends):
        bold, name = axis in chosen, scales[axis].name(names[axis])
        colour, width = (CHOSEN, 4.0) if bold else (INK, 1.3)
        spot = end[0] + right, end[1] + down
        shapes += [
            Line(start, end, colour, width),
            Text(spot, name, colour, NAME_SIZE, anchor, bold),
        ]
    return shapes


def space_scene(points: Points, names: Names) -> Data:
    """Return the Newton polyhedron of points with 3 axes, cut at the box [0, 1]^3 of the axes.

    Returns:
        ``points``: places in the box, in the given order, each with ``vertex``: whether it is a
        vertex of the polyhedron. ``faces``: ``corners`` in order around the face, and ``compact``:
        whether it is bounded without the box. ``axes``: ``name`` and ``ticks``, pairs of a place
        from 0 to 1 and a label.
    """
    scales = scales_of(points)
    vertices = polyhedron_vertices(points)
    return {
        "points": [
            {"at": shares_of(scales, point), "vertex": point in vertices} for point in points
        ],
        "faces": [
            face._asdict()
            for face in facets_in_box([shares_of(scales, vertex) for vertex in vertices])
        ],
        "axes": [
            {"name": scale.name(name), "ticks": scale.ticks(5)}
            for scale, name in zip(scales, names, strict=True)
        ],
    }
