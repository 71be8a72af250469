"""Lower bounds against exhaustive search, and values of many small positions."""

from __future__ import annotations

from math import gcd

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resgym.game.plain import prune
from resgym.solver.bounds import lower_bound, shadows
from resgym.solver.labels import SOLVED, Labeller
from resgym.solver.search import NO_TREE, PythonSearch
from resgym.solver.solve import solve
from tests.reference.rule import canonical, move
from tests.reference.search import least_depth, least_nodes, nodes_within, resolves_within
from tests.resgym.solver.positions import batch, drawn

# Beyond these the exhaustive search takes long.
DEEPEST = {2: 9, 3: 6, 4: 5, 5: 4}
LARGEST = {2: 25, 3: 17, 4: 15, 5: 13}


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


def played_out(points: list[tuple[int, ...]]) -> tuple[int, int]:
    """Depth and nodes in two axes, where the host has no choice, move by move."""
    if len(points) == 1:
        return 0, 1
    below = [played_out(move(points, (0, 1), axis)) for axis in (0, 1)]
    return 1 + max(depth for depth, _ in below), 1 + sum(nodes for _, nodes in below)


def test_bounds_by_hand():
    # 5 / 3 = 1 + 1 / (1 + 1 / 2): four moves.
    assert lower_bound([(0, 5), (3, 0)]) == 4
    assert lower_bound([(0, 5), (3, 0)], "nodes") == 9
    # Two edges, (1, 3) and (3, 1), with the root of the tree in common.
    assert lower_bound([(0, 4), (1, 1), (4, 0)]) == 3
    assert lower_bound([(0, 4), (1, 1), (4, 0)], "nodes") == 1 + 2 * 5
    # A point on the edge between two others is no vertex.
    assert lower_bound([(0, 2), (1, 1), (2, 0)]) == 1
    # Every projection is finished, the position is not.
    assert lower_bound([(2, 0, 0), (0, 3, 0), (0, 0, 5)]) == 1
    assert lower_bound([(1, 2, 3)]) == 0
    assert lower_bound([(1, 2, 3)], "nodes") == 1


@given(positions(2, 6, 12))
def test_two_axes_are_exact(points):
    points = canonical(points)
    assert (lower_bound(points), lower_bound(points, "nodes")) == played_out(points)


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
    for objective in ("depth", "nodes"):
        value = value_of(points, objective)
        assert lower_bound(points, objective) <= value
        for shadow in shadows(tuple(points)):
            assert value_of(shadow, objective) <= value


@pytest.mark.parametrize("objective", ["depth", "nodes"])
@pytest.mark.parametrize("number", [40, pytest.param(600, marks=pytest.mark.long)])
@pytest.mark.parametrize("dimension", [2, 3, 4, 5])
def test_values_against_exhaustive_search(dimension, number, objective):
    pytest.importorskip("numba")
    rows = 6 if dimension < 4 else 4
    places = drawn(number, dimension, dimension, rows, {2: 9, 3: 4, 4: 2, 5: 1}[dimension])
    labels = Labeller(dimension, rows, objective).host(*batch(places, rows))
    assert (labels.status == SOLVED).mean() >= 0.95
    compared = 0
    for points, value, status in zip(places, labels.value, labels.status, strict=True):
        points = canonical(points)
        highest = (DEEPEST if objective == "depth" else LARGEST)[dimension]
        if status == SOLVED and value <= highest:
            assert (least_depth if objective == "depth" else least_nodes)(points) == value
            compared += 1
        elif status == SOLVED and objective == "depth":
            assert not resolves_within(points, highest - 1)
        elif status == SOLVED:
            assert nodes_within(points, highest - 4) is None
    assert compared > 0.3 * number


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
    for objective in ("depth", "nodes"):
        assert solve(changed, objective).value == solve(points, objective).value
