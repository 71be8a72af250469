"""The faces of a Newton polyhedron in space, cut at the box of a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np

# For coordinates from 0 to 1. A face that is flatter than this at an edge is drawn without it.
TOLERANCE = 1e-9

CHUNK = 2**14  # triples at a time

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
    """Return all faces, from the vertices of the polyhedron with coordinates from 0 to 1.

    Each face is spanned by three of the vertices and directions of the axes. Its normal has no
    negative entry, since the polyhedron contains everything above it. A face that contains the
    direction of an axis extends to the side of the box. Floating point is enough for drawing.
    """
    points = np.array(vertices, dtype=float)
    triples = combinations(range(len(points) + 3), 3)
    found: dict[bytes, Facet] = {}
    while len(chunk := np.array(list(islice(triples, CHUNK)))):
        for row, normal in zip(*_faces(points, chunk), strict=True):
            if row.tobytes() not in found:
                found[row.tobytes()] = _facet(points, row, normal)
    return list(found.values())


def _faces(points: np.ndarray, triples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the faces that triples [K, 3] of the points [V, 3] and then the three axes span.

    Returns:
        rows: bool [F, V + 3]: which points lie on a face, and which axes have its direction; a
            face may occur several times.
        normals: [F, 3], of length 1.
    """
    base, one, other = triples[triples[:, 0] < len(points)].T
    start = points[base]
    spanning = np.concatenate([points, np.eye(3)])
    rays = (spanning[k] - np.where(k[:, None] < len(points), start, 0) for k in (one, other))
    normals = np.cross(*rays)
    lengths = np.sqrt((normals**2).sum(1))
    normals *= np.where(normals.sum(1) < 0, -1, 1)[:, None]
    some = (lengths > TOLERANCE) & (normals.min(1) >= -TOLERANCE * lengths)
    normals, base = normals[some] / lengths[some, None], base[some]
    heights = normals @ points.T
    on = heights <= heights.min(1, keepdims=True) + TOLERANCE
    # A plane that has nothing below it, so it has all three axes.
    lowest = on[np.arange(len(on)), base]
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
