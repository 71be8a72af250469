"""The faces of a Newton polyhedron in space, as far as a picture shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Of coordinates from 0 to 1. A face that is flatter than this at an edge is drawn without it.
TOLERANCE = 1e-9

Corner = tuple[float, float, float]


class Facet(NamedTuple):
    """A two-dimensional face of conv(S) + R^3_{>=0}, cut at the box [0, 1]^3.

    Attributes:
        corners: in no order; the face is their convex hull.
        compact: whether it is bounded without the box.
    """

    corners: tuple[Corner, ...]
    compact: bool


def facets_in_box(vertices: Sequence[Corner]) -> list[Facet]:
    """All faces, from the vertices of the polyhedron with coordinates from 0 to 1.

    Each is spanned by three of the vertices and the directions of the axes. Its normal has no
    negative entry, since the polyhedron holds all that is above it. A face that has an axis's
    direction goes on to the side of the box. Floating point is enough to draw.
    """
    points = np.array(vertices, dtype=float)
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], Facet] = {}
    for normal in _normals(points):
        height = points @ normal
        lowest = height.min()
        on = tuple(int(index) for index in (height <= lowest + TOLERANCE).nonzero()[0])
        free = tuple(axis for axis in range(3) if normal[axis] <= TOLERANCE)
        if (on, free) in found or _rank(points[list(on)], free) < 2:
            continue
        corners = {tuple(points[index].tolist()) for index in on}
        for axis in free:
            corners |= {(*c[:axis], 1.0, *c[axis + 1 :]) for c in corners}
        found[on, free] = Facet(tuple(sorted(corners)), not free)
    return list(found.values())


def _normals(points: np.ndarray) -> np.ndarray:
    """Candidates [K, 3] of length 1 without negative entries; every face has its normal there."""
    candidates = []
    for index, point in enumerate(points):
        rays = np.concatenate([points[index + 1 :] - point, np.eye(3)])
        one, other = np.triu_indices(len(rays), 1)
        candidates.append(np.cross(rays[one], rays[other]))
    normals = np.concatenate(candidates)
    lengths = np.linalg.norm(normals, axis=1)
    normals = normals[lengths > TOLERANCE] / lengths[lengths > TOLERANCE, None]
    normals = np.where(normals.sum(1, keepdims=True) < 0, -normals, normals)
    normals = normals[normals.min(1) >= -TOLERANCE]
    return np.unique(np.round(normals, 12), axis=0)


def _rank(points: np.ndarray, free: tuple[int, ...]) -> int:
    if len(free) > 1:
        return 2  # a normal leaves no more
    directions = np.concatenate([points[1:] - points[0], np.eye(3)[list(free)]])
    return int(np.linalg.matrix_rank(directions, tol=1e-7)) if len(directions) else 0
