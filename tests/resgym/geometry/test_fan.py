"""Cones, divisors and thresholds of trees, against independent geometry."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resgym
from resgym.geometry.fan import Fan, chart_rays
from resgym.polynomials.parse import ConstantWarning
from tests.resgym.trees.tree_check import check_leaves_fill_the_orthant

POINT = st.tuples(*[st.integers(0, 5)] * 3).filter(any)
POSITIONS = st.lists(POINT, min_size=2, max_size=5, unique=True)


@given(POSITIONS)
@settings(max_examples=25, deadline=None)
def test_cones_are_unimodular_and_fill_the_orthant_once(points):
    tree = resgym.resolution_tree(points, "zeillinger", max_depth=6)
    for chart, cone in zip(tree.charts, chart_rays(tree), strict=True):
        matrix = np.array(cone)
        assert round(abs(np.linalg.det(matrix))) == 1
        assert set(chart.points) <= {tuple(matrix @ point) for point in tree.root.points}
    check_leaves_fill_the_orthant(tree)


def test_leaves_of_the_polyhedra_game_fill_the_orthant_and_a_wrong_one_is_found():
    tree = resgym.resolution_tree("x^5+y^7+x*y*z", "random", rule="polyhedra", unit=2, max_depth=9)
    check_leaves_fill_the_orthant(tree)
    *charts, leaf = resgym.solve("D4").tree
    wrong = resgym.ResolutionTree([*charts, leaf._replace(ending=None)], "xyz")
    with pytest.raises(AssertionError):
        check_leaves_fill_the_orthant(wrong)


def test_divisors_of_e8():
    tree = resgym.solve("E8", objective="nodes").tree
    divisors = {divisor.ray: divisor for divisor in tree.divisors()}
    assert len(divisors) == len(tree.fan().rays) - 3
    last = divisors[15, 10, 6]  # of weighted degree 30, which decides the threshold
    assert (last.multiplicity, last.log_discrepancy) == (30, 31)
    assert last.pole == Fraction(-31, 30) == -tree.log_canonical_threshold()
    first = tree.divisors()[0]
    assert first == ((1, 1, 1), 2, 3, Fraction(-3, 2), (1,))
    made = [number for divisor in divisors.values() for number in divisor.charts]
    assert sorted(made) == [chart.number for chart in tree if chart.children]
    plain = resgym.resolution_tree("E8").divisors()
    assert (plain[0].pole, plain.table_rows()[1][3]) == (None, "none")


def test_local_choices_that_do_not_glue_are_found():
    # The charts left and right of the wall between (1, 1, 0) and z: only one subdivides it.
    rays = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)]
    fan = Fan(rays, [(0, 3, 2), (3, 1, 4), (1, 2, 4)], [3, 4, 5])
    assert (set(fan.faults), fan.glues) == ({(2, 3), (3, 4), (2, 4)}, False)
    glued = Fan(rays, [(0, 3, 4), (0, 2, 4), (3, 1, 4), (1, 2, 4)], [3, 4, 5, 6])
    assert glued.glues


def test_the_threshold_of_a_constant():
    with pytest.warns(ConstantWarning):
        assert resgym.resolution_tree("1+x+y").log_canonical_threshold() == math.inf
