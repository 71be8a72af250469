"""Lower bounds against the values, and what changes no value."""

from __future__ import annotations

from math import gcd

from hypothesis import given, settings
from hypothesis import strategies as st

from resgym.game.plain import prune
from resgym.solver.bounds import lower_bound, outer, shadows
from resgym.solver.search import NO_TREE, PythonSearch
from resgym.solver.solve import solve
from tests.reference.rule import canonical, move
from tests.resgym.solver.positions import OBJECTIVES


def positions(dimension: int, points: int, top: int) -> st.SearchStrategy:
    point = st.tuples(*[st.integers(0, top)] * dimension)
    return st.lists(point, min_size=1, max_size=points).map(prune)


def value_of(points: list[tuple[int, ...]], objective: str) -> int:
    """The value, by the search on plain integers."""
    search = PythonSearch(objective)
    search.settle(points, -1, NO_TREE, 10**6)
    lower, upper = search.bounds([points], -1)[0]
    assert lower == upper
    return lower


def played_out(points: list[tuple[int, ...]], objective: str) -> int:
    """The value in two axes, where the host has no choice, move by move."""
    finished, cost, total = OBJECTIVES[objective]
    if len(points) == 1:
        return finished
    return cost + total(played_out(move(points, (0, 1), axis), objective) for axis in (0, 1))


def test_bounds_by_hand():
    # 5 / 3 = 1 + 1 / (1 + 1 / 2): four moves.
    assert lower_bound([(0, 5), (3, 0)]) == 4
    assert lower_bound([(0, 5), (3, 0)], "nodes") == 9
    # Two edges, (1, 3) and (3, 1), with the root of the tree in common.
    assert lower_bound([(0, 4), (1, 1), (4, 0)]) == 3
    assert lower_bound([(0, 4), (1, 1), (4, 0)], "nodes") == 1 + 2 * 5
    assert lower_bound([(0, 4), (1, 1), (4, 0)], "leaves") == 1 + 5
    # A point on the edge between two others is no vertex.
    assert lower_bound([(0, 2), (1, 1), (2, 0)]) == 1
    # Every projection is finished, the position is not.
    assert lower_bound([(2, 0, 0), (0, 3, 0), (0, 0, 5)]) == 1
    assert lower_bound([(1, 2, 3)]) == 0
    assert lower_bound([(1, 2, 3)], "nodes") == 1


@given(positions(2, 6, 12))
def test_two_axes_are_exact(points):
    points = canonical(points)
    for objective in OBJECTIVES:
        assert lower_bound(points, objective) == played_out(points, objective)


@given(st.integers(1, 10**40), st.integers(1, 10**40))
def test_one_edge_of_any_size(a, b):
    quotients, (x, y) = 0, (a, b)
    while y:
        quotients, (x, y) = quotients + x // y, (y, x % y)
    assert x == gcd(a, b)
    assert lower_bound([(0, b), (a, 0)]) == quotients


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_bounds_and_projections_are_at_most_the_value(data):
    dimension = data.draw(st.integers(3, 5))
    points = data.draw(positions(dimension, 5 - (dimension > 3), 6 - dimension))
    for objective in OBJECTIVES:
        value = value_of(points, objective)
        assert lower_bound(points, objective) <= value
        for shadow in shadows(tuple(points)):
            assert value_of(shadow, objective) <= value


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_the_value_is_that_of_the_polyhedron(data):
    """Shifts, factors, orders of axes and points inside the polyhedron change nothing."""
    dimension = data.draw(st.integers(2, 4))
    points = data.draw(positions(dimension, 4, 4))
    order = data.draw(st.permutations(range(dimension)))
    shift = data.draw(st.lists(st.integers(0, 50), min_size=dimension, max_size=dimension))
    factor = 2 * data.draw(st.integers(1, 9))
    changed = [tuple(factor * (point[j] + shift[j]) for j in order) for point in points]
    # The middle of two points.
    changed.append(tuple((a + b) // 2 for a, b in zip(changed[0], changed[-1], strict=True)))
    for objective in OBJECTIVES:
        assert solve(changed, objective).value == solve(points, objective).value


def test_points_that_a_segment_covers_go():
    ends = [(0, 0, 6), (6, 0, 0)]
    assert outer([*ends, (3, 0, 3)]) == ends
    # Above the segment, and right beside it.
    assert outer([*ends, (2, 1, 4)]) == ends
    assert outer([*ends, (2, 1, 3)]) == [*ends, (2, 1, 3)]
    # Between three points, but over no segment between two.
    corners = [(0, 0, 3), (0, 3, 0), (3, 0, 0)]
    assert outer([*corners, (1, 1, 1)]) == [*corners, (1, 1, 1)]
    # Both of these lie on the segment between two others.
    assert outer([(0, 3, 0), (1, 2, 0), (2, 1, 0), (3, 0, 0)]) == [(0, 3, 0), (3, 0, 0)]
