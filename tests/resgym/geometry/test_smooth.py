"""Smooth charts: totals that were checked with Singular, charts by hand, and least depths."""

import pytest

import resgym
from resgym.geometry.fan import chart_rays
from resgym.geometry.smooth import is_smooth
from tests.resgym.commands import run
from tests.resgym.tables import rows

SIMPLE = [*(f"A{k}" for k in range(1, 9)), *(f"D{k}" for k in range(4, 9)), "E6", "E7", "E8"]
UNIT = ((1, 0, 0), (0, 1, 0), (0, 0, 1))


@pytest.mark.parametrize(
    ("host", "options", "nodes", "depth"),
    [
        ("zeillinger", {"stop": "smooth"}, 408, 12),
        ("zeillinger", {"stop": "crossings"}, 582, 14),
        ("zeillinger", {}, 582, 14),
        ("zeillinger", {"stop": "smooth", "centres": "equimultiple"}, 213, 6),
        ("spivakovsky", {"stop": "smooth"}, 213, 6),
        ("spivakovsky", {"stop": "crossings"}, 357, 7),
    ],
)
def test_trees_of_the_simple_singularities(host, options, nodes, depth):
    for more in ({}, {"reposition": True}) if host == "zeillinger" else ({},):
        trees = [resgym.resolution_tree(name, host, **options, **more) for name in SIMPLE]
        assert sum(tree.num_nodes for tree in trees) == nodes
        assert max(tree.depth for tree in trees) == depth


def test_a_chart_that_is_singular_away_from_its_origin_goes_on():
    """Chart 24 has the strict transform x + xy + y^3 z^5, singular at (0, -1, 0), over 0."""
    full = resgym.resolution_tree("E8")
    rays = chart_rays(full)[23]
    assert rays == ((3, 2, 1), (1, 1, 1), (0, 0, 1))
    assert not is_smooth(full.root.points, rays)
    tree = resgym.resolution_tree("E8", stop="smooth")
    (chart,) = (c for c, each in zip(tree, chart_rays(tree), strict=True) if each == rays)
    assert chart.ending is None
    assert (tree.num_nodes, tree.depth) == (51, 11)
    assert "(smooth)" in tree.to_text()
    crossings = resgym.resolution_tree("D4", "spivakovsky", stop="crossings")
    assert "(normal crossings)" in crossings.to_text()


@pytest.mark.parametrize(
    ("start", "rays", "smooth", "crossings"),
    [
        # At the start: only the origin lies over it.
        ("x+y^2", UNIT, True, True),
        ("x^2+y^3", UNIT, False, False),
        ("x*(x*y+z^2)", UNIT, False, False),
        ("x*(x+y)", UNIT, False, True),
        ("x+1", UNIT, True, True),
        # Blow up the origin of x^2 + y^2 + z^2: in a chart 1 + y^2 + z^2, smooth over 0.
        ("x^2+y^2+z^2", ((1, 1, 1), (0, 1, 0), (0, 0, 1)), True, True),
        # Of x^2 + y^3 the strict transform x^2 + y is smooth, but touches the divisor y = 0.
        ("x^2+y^3", ((1, 0), (1, 1)), True, False),
        ("x^2+y^3", ((1, 1), (0, 1)), True, True),
        # The lines x = 0 and x + y = 0 are apart; the first is not in the second chart.
        ("x*(x+y)", ((1, 0), (1, 1)), True, True),
        ("x*(x+y)", ((1, 1), (0, 1)), True, True),
    ],
)
@pytest.mark.filterwarnings("ignore::resgym.polynomials.parse.ConstantWarning")
def test_charts_by_hand(start, rays, smooth, crossings):
    points = resgym.parse(start, variables=[*"xyz"][: len(rays)])
    assert is_smooth(points, rays) == smooth
    assert is_smooth(points, rays, crossings=True) == crossings


@pytest.mark.parametrize(
    ("options", "depths"),
    [
        ({"centres": "equimultiple"}, "1 1 2 2 3 3 4 4 3 3 4 4 5 4 5 6"),
        ({}, "1 1 2 2 3 3 4 4 2 3 3 4 4 4 4 5"),
    ],
)
def test_least_depths_to_smooth(options, depths):
    solved = [resgym.solve(name, stop="smooth", **options) for name in SIMPLE]
    assert " ".join(str(each.value) for each in solved) == depths
    assert [each.tree.depth for each in solved] == [each.value for each in solved]


@pytest.mark.parametrize("reposition", [False, True])
def test_a_factor_of_the_polynomial_belongs_to_the_strict_transform(reposition):
    """Along y = z = 0 the polynomial x (y^2 + z^3) has order 2, at the origin 3."""
    tree = resgym.resolution_tree(
        "x*y^2+x*z^3", centres="equimultiple", reposition=reposition, max_depth=2
    )
    assert [chart.axes for chart in tree][:4] == [(0, 1, 2), (1, 2), None, (0, 1, 2)]


def test_equimultiple_centres_are_those_of_the_definition():
    tree = resgym.resolution_tree("E8", centres="equimultiple").compare("zeillinger")
    for chart in tree:
        assert not chart.axes or chart.others == (("zeillinger", chart.axes),)
        lowest = [min(p[k] for p in chart.points) for k in range(3)]
        axes = chart.axes or (0, 1, 2)
        order, all_axes = (
            min(sum(p[k] - lowest[k] for k in some) for p in chart.points)
            for some in (axes, (0, 1, 2))
        )
        assert order == all_axes
    assert {chart.ending for chart in tree} == {None, "resolved"}


@pytest.mark.parametrize(("start", "facts"), rows(__file__, "facts.txt"))
def test_what_is_true_of_a_polynomial(start, facts, capsys):
    """None of them takes for ever."""
    code, out, err = run(capsys, "examine", start)
    assert (code, err) == (0, "")
    assert out == f"{resgym.examine(start)}\n"
    for fact in facts.split(", "):
        assert fact in out
