"""Checks a tree move by move against the plain-Python rule."""

from fractions import Fraction
from math import prod

from resgym.geometry.fan import chart_rays
from tests.reference.rule import canonical, move


def check_tree(tree, start, *, polytope="dominance", reposition=False, one_game=False):
    """Numbers, depths, moves, ends and totals of a tree are right."""

    def position(number):
        return sorted(tree[number].points, reverse=True)

    assert position(1) == canonical(start, polytope, reposition)
    assert (tree.root.parent, tree.root.axis) == (None, None)
    met = [1]
    for number, chart in enumerate(tree, start=1):
        assert chart.number == number
        met.extend(chart.children)
        if len(chart.points) == 1:
            assert chart.ending == "resolved"
        if chart.ending is not None:
            assert (list(chart.children), chart.axes) == ([], None)
            continue
        assert len(chart.axes) >= 2
        followed = [tree[child].axis for child in chart.children]
        if one_game:
            assert len(followed) == 1
            assert set(followed) <= set(chart.axes)
        else:
            assert followed == list(chart.axes)
        for child in chart.children:
            after = tree[child]
            assert (after.parent, after.depth) == (number, chart.depth + 1)
            expected = move(position(number), chart.axes, after.axis, polytope, reposition)
            assert position(child) == expected
    assert met == list(range(1, tree.num_nodes + 1))
    assert tree.depth == max(chart.depth for chart in tree)
    assert tree.num_nodes == len(list(tree))
    assert tree.num_leaves == sum(not chart.children for chart in tree)
    assert tree.complete == (tree.num_cut == 0)
    if not one_game:
        check_leaves_fill_the_orthant(tree)


def check_leaves_fill_the_orthant(tree):
    """The cones of the leaves cover all weights once, as the integral of exp(-|v|) over them shows.

    Over a unimodular cone it is the product of 1 / |ray|, and over the orthant it is 1. A leaf that
    is lost or counted twice and nearly every wrong ray change the sum.
    """
    leaves = [cone for chart, cone in zip(tree, chart_rays(tree), strict=True) if chart.ending]
    assert sum(Fraction(1, prod(map(sum, cone))) for cone in leaves) == 1
