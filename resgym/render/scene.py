"""A position in space as data, for pictures that readers can turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from resgym.render.diagram import Points, Scale, polyhedron_vertices, shares_of
from resgym.render.facets import facets_in_box

TICKS = 5


def space_scene(points: Points, names: Sequence[str]) -> dict[str, Any]:
    """Return the Newton polyhedron of points with 3 axes, cut at the box [0, 1]^3 of the axes.

    Returns:
        ``points``: places in the box, in the given order, each with ``vertex``: whether it is a
        vertex of the polyhedron. ``faces``: ``corners`` in order around the face, and ``compact``:
        whether it is bounded without the box. ``axes``: ``name`` and ``ticks``, pairs of a place
        from 0 to 1 and a label.
    """
    scales = [Scale.of([point[axis] for point in points]) for axis in range(3)]
    vertices = polyhedron_vertices(points)
    faces = facets_in_box([shares_of(scales, vertex) for vertex in vertices])
    known = set(vertices)
    return {
        "points": [
            {"at": shares_of(scales, point), "vertex": tuple(point) in known} for point in points
        ],
        "faces": [
            {
                "corners": [[round(value, 5) for value in corner] for corner in face.corners],
                "compact": face.compact,
            }
            for face in sorted(faces, key=lambda face: face.compact)
        ],
        "axes": [
            {"name": scale.name(name), "ticks": scale.ticks(TICKS)}
            for scale, name in zip(scales, names, strict=True)
        ],
    }
