"""Lower bounds against exhaustive search, and values of many small positions."""

from __future__ import annotations

import random
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
from tests.resgym.solver.positions import batch

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


def drawn(number: int, dimension: int, seed: int) -> list[list[tuple[int, ...]]]:
    draw = random.Random(seed)
    found = []
    while len(found) < number:
        top = {2: 9, 3: 4, 4: 2, 5: 1}[dimension]
        rows = [
            tuple(draw.randint(0, top) for _ in range(dimension))
            for _ in range(draw.randint(2, 6 if dimension < 4 else 4))
        ]
        points = prune(rows)
        if len(points) > 1:
            found.append(points)
    return found


def agree(number: int, dimension: int, seed: int) -> int:
    """Compares values with the exhaustive search; returns how many it could find out."""
    places = drawn(number, dimension, seed)
    compared = 0
    for objective in ("depth", "nodes"):
        rows = max(map(len, places))
        labels = Labeller(dimension, rows, objective).host(*batch(places, rows))
        solved = labels.status == SOLVED
        assert solved.mean() >= 0.95
        for points, value, known in zip(places, labels.value.tolist(), solved, strict=True):
            points = canonical(points)
            if not known:
                continue
            if objective == "depth" and value <= DEEPEST[dimension]:
                assert least_depth(points) == value
                compared += 1
            elif objective == "depth":
                assert not resolves_within(points, DEEPEST[dimension] - 1)
            elif value <= LARGEST[dimension]:
                assert least_nodes(points) == value
                compared += 1
            else:
                assert nodes_within(points, LARGEST[dimension] - 4) is None
    return compared


@pytest.mark.parametrize("dimension", [2, 3, 4, 5])
def test_values_against_exhaustive_search(dimension):
    pytest.importorskip("numba")
    assert agree(40, dimension, seed=dimension) > 30


@pytest.mark.long
@pytest.mark.parametrize("dimension", [2, 3, 4, 5])
def test_many_values_against_exhaustive_search(dimension):
    pytest.importorskip("numba")
    assert agree(600, dimension, seed=10 + dimension) > 500


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
