"""Faces of polyhedra in space, against the definition in fractions."""

import random
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from resgym.pictures.diagram import facets_in_box, scales_of
from tests.reference.polyhedron import newton_vertices

AXES = ((1, 0, 0), (0, 1, 0), (0, 0, 1))


def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def supporting_faces(vertices):
    """The vertices and the free axes of every face, in integers.

    A face is spanned by two independent edges or axes at one of its vertices.
    """
    faces = set()
    for base in vertices:
        edges = [tuple(a - b for a, b in zip(v, base, strict=True)) for v in vertices if v != base]
        for one, other in combinations([*edges, *AXES], 2):
            normal = cross(one, other)
            for sign in (1, -1):
                n = tuple(sign * value for value in normal)
                if any(n) and min(n) >= 0:
                    height = {v: sum(map(lambda a, b: a * b, n, v)) for v in vertices}
                    lowest = min(height.values())
                    on = frozenset(v for v in vertices if height[v] == lowest)
                    free = frozenset(axis for axis in range(3) if n[axis] == 0)
                    if rank_is_two(on, free):
                        faces.add((on, free))
    return faces


def rank_is_two(on, free):
    first, *rest = sorted(on)
    spans = [tuple(a - b for a, b in zip(v, first, strict=True)) for v in rest]
    spans += [AXES[axis] for axis in free]
    return any(any(cross(a, b)) for a, b in combinations(spans, 2))


def described(facet, vertices, scale):
    corners = {tuple(round(Fraction(c) * scale) for c in corner) for corner in facet.corners}
    on = frozenset(corners & set(vertices))
    free = set()
    for axis, v in product(range(3), on):
        if (*v[:axis], scale, *v[axis + 1 :]) in corners and v[axis] < scale:
            free.add(axis)
    assert facet.compact == (not free)
    return on, frozenset(free)


@pytest.mark.parametrize("seed", range(8))
def test_faces_are_those_of_the_definition(seed):
    generator = random.Random(seed)
    top, scale = generator.choice([2, 4, 9]), 16
    number = generator.randint(1, 9)
    points = {tuple(generator.randint(0, top) for _ in range(3)) for _ in range(number)}
    vertices = newton_vertices(sorted(points))
    shares = [tuple(value / scale for value in v) for v in vertices]
    facets = facets_in_box(shares)
    found = [described(facet, vertices, scale) for facet in facets]
    assert len(set(found)) == len(found)
    assert set(found) == supporting_faces(vertices)
    for facet in facets:
        assert_goes_around(np.array(facet.corners))


def assert_goes_around(corners):
    """Every corner turns the same way, and all turns are one round."""
    edges = np.roll(corners, -1, 0) - corners
    turns = np.cross(edges, np.roll(edges, -1, 0))
    assert (turns @ turns.sum(0) >= -1e-12).all()
    lengths = np.linalg.norm(edges, axis=1)
    cosines = (edges * np.roll(edges, -1, 0)).sum(1) / (lengths * np.roll(lengths, -1))
    assert np.arccos(cosines.clip(-1, 1)).sum() == pytest.approx(2 * np.pi)


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
