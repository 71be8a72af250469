"""The solver against exhaustive search, and what it says when it is stopped."""

import contextlib
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resgym.game.exact import prune
from resgym.polynomials.singularities import random_family, singularity, singularity_names
from resgym.solver import kernels
from resgym.solver import search as proof_module
from resgym.solver.search import Search, TooMuch, compiled
from resgym.solver.solve import solve
from resgym.trees.growth import resolution_tree
from tests.reference import rule
from tests.reference.search import Exhaustive
from tests.resgym.solver.positions import LEAST, OBJECTIVES, drawn
from tests.resgym.trees.tree_check import check_tree

FIVE_POINTS = [list(random_family("random(points=5, max=5, dim=3)", k)) for k in range(8)]


def small_positions(number, seed):
    """This many of each size that is searched in an instant."""
    sizes = [(2, 4, 4), (3, 3, 2), (3, 4, 2), (4, 3, 2)]
    return [list(each) for size in sizes for each in drawn(number, seed, *size)]


def size(tree, objective):
    return {"depth": tree.depth, "nodes": tree.num_nodes, "leaves": tree.num_leaves}[objective]


@pytest.mark.parametrize("objective", LEAST)
def test_least_trees_of_the_singularities(objective):
    for number, (name, value) in enumerate(zip(singularity_names(), LEAST[objective], strict=True)):
        solution = solve(name, objective)
        assert solution.proved
        assert solution.value == solution.lower_bound == solution.upper_bound == value
        assert value == size(solution.tree, objective)
        check_tree(solution.tree, list(singularity(name)))
        if number % 3 == 2 and value < 18:  # beyond it the exhaustive search takes seconds
            points = rule.canonical(list(singularity(name)))
            assert value == Exhaustive(*OBJECTIVES[objective]).value(points)


@pytest.mark.parametrize(
    "points", [*small_positions(4, seed=1), *FIVE_POINTS, [(0, 3), (1, 1), (3, 0)]]
)
def test_small_positions_against_exhaustive_search(points):
    solutions = {objective: solve(points, objective) for objective in OBJECTIVES}
    # Beyond these limits the exhaustive search takes seconds.
    limits = {"depth": 5 if len(points[0]) < 4 else 4, "nodes": 17, "leaves": 9}
    for objective, solution in solutions.items():
        assert solution.proved
        if solution.value <= limits[objective]:
            tried = Exhaustive(*OBJECTIVES[objective])
            assert solution.value == tried.value(rule.canonical(points))
        check_tree(solution.tree, points)
        for other, least in solutions.items():
            assert size(solution.tree, other) >= least.value
        assert size(solution.tree, objective) == solution.value


# These lead to positions with equal axes, which the table may hold in two orders.
EQUAL_AXES = [
    [(2, 1, 1, 1), (1, 4, 1, 1), (0, 3, 4, 4), (1, 3, 1, 2), (4, 2, 4, 1)],
    [(1, 0, 2, 0), (0, 2, 1, 0), (2, 2, 0, 1), (2, 0, 1, 2), (0, 2, 0, 2)],
]


@pytest.mark.parametrize("points", [*EQUAL_AXES, *drawn(8, 5, 4, 5, 3)])
def test_trees_in_four_axes_are_as_deep_as_proved(points):
    solution = solve(points)
    assert solution.tree.depth == solution.value == solution.lower_bound


def test_stopped_by_depth_it_says_what_is_proved():
    for limit in (0, 4, 6, 7):
        stopped = solve("E8", max_depth=limit)
        assert limit + 1 <= stopped.lower_bound <= 7 <= stopped.upper_bound or limit == 7
        assert stopped.tree.depth == stopped.upper_bound
        # A bound above the limit may be the value.
        assert stopped.value == (7 if stopped.proved else None)
        assert stopped.stopped_by == (None if stopped.proved else "max_depth")
    assert solve("E8", max_depth=7).value == 7
    assert not solve("E8", max_depth=6).proved


@pytest.mark.parametrize("limit", [{"time_limit": 0.3}, {"max_positions": 500}])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_stopped_by_a_limit_it_says_what_is_proved(objective, limit):
    hard = random_family("random(points=20, max=50, dim=4)", seed=3)
    solution = solve(hard, objective, **limit)
    found = solution.proved, solution.value, solution.stopped_by
    assert found == (False, None, next(iter(limit)))
    assert solution.lower_bound >= 3
    assert str(solution.lower_bound) in str(solution)


def test_corners():
    assert (solve([(0, 0, 0)]).value, solve([(1, 1), (2, 2)], "nodes").value) == (0, 1)
    corner = [tuple(2 if j == k else 0 for j in range(10)) for k in range(10)]
    assert solve(corner, max_depth=1).value == 1
    assert solve(corner, "nodes", time_limit=0.0).lower_bound >= 3


def test_a_solution_is_reported_and_kept():
    seen = []
    solution = solve("E8", progress=seen.append)
    bounds = [now.lower_bound for now in seen]
    assert (bounds, bounds[-1]) == (sorted(bounds), solution.value)
    assert seen[-1].positions_searched == solution.positions_searched
    again = pickle.loads(pickle.dumps(solution))
    assert (again.value, again.tree.to_json()) == (solution.value, solution.tree.to_json())
    assert solution.to_dict()["proved"] is True


def steps(points, objective, life):
    """What is proved after some stretches, and how much was done for it."""
    root = prune(list(points))
    search = Search(objective, len(points[0]), len(root), life)
    bounds = (0, 1)
    while bounds[0] < bounds[1] and search.expanded < 500:
        search.allow(min(37, 500 - search.expanded))
        (number,) = search.numbers(root)
        with contextlib.suppress(TooMuch):
            search.value(number)
        bounds = search.bounds(number)
    return bounds, search.expanded, search.size


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_both_lives_take_the_same_steps(objective):
    pytest.importorskip("numba")
    cases = [*small_positions(3, seed=2), list(singularity("E8"))]
    # Many equal axes.
    cases += [[tuple(2 if j == k else 0 for j in range(d)) for k in range(d)] for d in (5, 6, 7)]
    cases += [[(0, 3, 1, 1), (2, 0, 1, 2), (1, 1, 0, 3), (3, 1, 2, 0)]]
    cases += [[(0, 1, 1, 0, 2), (1, 0, 0, 2, 1), (2, 1, 0, 1, 0)]]
    for points in cases:
        assert steps(points, objective, kernels) == steps(points, objective, compiled())


@pytest.mark.parametrize("size", [2**40, 2**54, 2**59])
def test_huge_exponents_are_exact(monkeypatch, size):
    # Coprime, so that dividing does not help; too large for the compiled search.
    points = [(size, 0, 1), (0, size - 1, 2), (1, 3, 0)]
    monkeypatch.setattr(proof_module, "is_ready", lambda: True)
    solution = solve(points, max_depth=4)
    monkeypatch.setattr(proof_module, "is_ready", lambda: False)
    exact = solve(points, max_depth=4)
    assert (solution.proved, solution.lower_bound) == (exact.proved, exact.lower_bound)
    assert (exact.proved, exact.lower_bound >= size // 4) == (False, True)


@settings(deadline=None)
@given(st.integers(1, 2**59), st.integers(1, 2**59))
def test_one_edge_of_any_size(a, b):
    quotients = 0
    x, y = (a, b)
    while y:
        quotients, (x, y) = quotients + x // y, (y, x % y)
    assert solve([(0, b), (a, 0)]).value == quotients


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_the_value_is_that_of_the_polyhedron(data):
    """Shifts, factors, orders of axes and points inside the polyhedron change nothing."""
    dimension = data.draw(st.integers(2, 4))
    point = st.tuples(*[st.integers(0, 4)] * dimension)
    points = prune(data.draw(st.lists(point, min_size=1, max_size=4)))
    order = data.draw(st.permutations(range(dimension)))
    shift = data.draw(st.lists(st.integers(0, 50), min_size=dimension, max_size=dimension))
    factor = 2 * data.draw(st.integers(1, 9))
    changed = [tuple(factor * (point[j] + shift[j]) for j in order) for point in points]
    # The middle of two points.
    changed.append(tuple((a + b) // 2 for a, b in zip(changed[0], changed[-1], strict=True)))
    for objective in OBJECTIVES:
        assert solve(changed, objective).value == solve(points, objective).value


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=2, max_size=4))
def test_in_two_axes_the_value_is_the_size_of_the_only_tree(edges):
    """Edges of steep slopes share long ways, whose nodes count once."""
    points = [(0, sum(fall for _, fall in edges))]
    for run, fall in sorted(edges, key=lambda edge: edge[0] / edge[1]):  # the steepest first
        points.append((points[-1][0] + run, points[-1][1] - fall))
    only = resolution_tree(points, "all_coord")
    for objective in OBJECTIVES:
        assert solve(points, objective).value == size(only, objective)
