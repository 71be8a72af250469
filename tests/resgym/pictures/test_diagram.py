"""Faces of polyhedra in space, and the scales of their axes."""

import random
from collections import Counter

import numpy as np
import pytest

from resgym.pictures.diagram import facets_in_box, scales_of
from tests.reference.polyhedron import newton_vertices

SIDE = 16  # of the box, in integers


@pytest.mark.parametrize("seed", range(8))
def test_faces_lie_below_the_polyhedron_and_close_up(seed):
    """Every edge within the box is one of two faces, so none is missing and all go around."""
    generator = random.Random(seed)
    top, number = generator.choice([2, 4, 9]), generator.randint(1, 9)
    points = {tuple(generator.randint(0, top) for _ in range(3)) for _ in range(number)}
    vertices = np.array(newton_vertices(sorted(points)))
    edges = Counter()
    for facet in facets_in_box(vertices / SIDE):
        corners = (np.array(facet.corners) * SIDE).round().astype(int)
        after = np.roll(corners, -1, 0)
        assert facet.compact == (corners.max() < SIDE)
        normal = np.cross(corners - corners[0], after - corners[0]).sum(0)
        normal *= np.sign(normal.sum())
        assert normal.any()
        assert normal.min() >= 0
        assert (corners @ normal == (vertices @ normal).min()).all()
        for one, other in zip(corners, after, strict=True):
            if not ((one == SIDE) & (other == SIDE)).any():
                edges[frozenset((tuple(one), tuple(other)))] += 1
    assert {*edges.values()} == {2}


@pytest.mark.parametrize(
    ("points", "spans"),
    [
        ([(6, 2, 2), (6, 3, 0)], (7, 7, 7)),
        ([(2, 0, 0), (0, 3, 0)], (4, 4, 4)),  # an axis without a value follows the others
        ([(40, 0, 1), (0, 3, 0), (0, 0, 2)], (45, 4, 3)),  # equal ones would hide z
        ([(1, 1, 1)], (2, 2, 2)),
        ([(0, 0, 0)], (1, 1, 1)),
    ],
)
def test_axes_have_one_scale_unless_that_would_squeeze_the_points(points, spans):
    assert tuple(scale.span for scale in scales_of(points)) == spans
