"""Values and trees of the other rules, against trying everything on the plain references."""

import random

import pytest

import resgym
from tests.reference.search import Exhaustive
from tests.reference.variants import Polyhedra, Thom


def positions(rule, number, seed):
    """Small positions of one to three moves, with what `solve` takes for them."""
    draw = random.Random(seed)
    found = []
    while len(found) < number:
        dimension = draw.choice((2, 2, 3))
        points = [tuple(draw.randint(0, 3) for _ in range(dimension)) for _ in range(3)]
        options = {"rule": rule}
        if rule == "polyhedra":
            options["unit"] = draw.choice((1, 2, 3))
            reference = Polyhedra(options["unit"])
            position = reference.start(points)
        else:
            options["weights"] = [draw.randint(1, 3) for _ in range(dimension)]
            reference = Thom()
            position = reference.start(points, tuple(options["weights"]), points[-1])
        tried = Exhaustive(0, 1, max, reference)
        depth = next((k for k in range(4) if tried.is_within(position, k)), 0)
        if depth:
            found.append((points, options, reference, position, depth))
    return found


@pytest.mark.parametrize("rule", ["polyhedra", "thom"])
def test_values_against_trying_everything(rule):
    drawn = positions(rule, 20, 1)
    for points, options, reference, position, depth in drawn:
        solution = resgym.solve(points, max_depth=depth, **options)
        assert (solution.value, solution.proved, solution.tree.depth) == (depth, True, depth)
        assert resgym.solve(points, max_depth=depth - 1, **options).stopped_by == "max_depth"
        if depth <= 2:
            nodes = resgym.solve(points, "nodes", **options)
            least = Exhaustive(1, 1, sum, reference).value(position)
            assert nodes.value == nodes.tree.num_nodes == least
    assert {depth for *_, depth in drawn} == {1, 2, 3}


def test_a_point_in_the_polyhedra_game_goes_down_by_units():
    """(5/2, 1): two moves on the first axis, one on the second, whoever the agent is."""
    solution = resgym.solve([(5, 2)], rule="polyhedra", unit=2)
    endings = [chart.ending for chart in solution.tree]
    assert (solution.value, endings) == (3, [None, None, None, "below_one"])
