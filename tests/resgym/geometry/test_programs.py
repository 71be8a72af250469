"""Scripts for other programs, against texts written by hand and against the tree."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import resgym
from resgym.geometry.fan import chart_rays
from resgym.polynomials.parse import CoefficientWarning


@pytest.mark.parametrize("ending", ["sing", "m2", "jl", "pl"])
def test_the_node(ending):
    """One blow-up of x^2 + y^2, a divisor (1, 1) of multiplicity 2 and log discrepancy 2."""
    expected = Path(__file__).with_name(f"node.{ending}").read_text(encoding="utf-8")
    assert resgym.resolution_tree("x^2+y^2", "all_coord").to_script(ending) == expected


def lists(script, pattern):
    """The value that a pattern finds in a script, as lists."""
    (found,) = re.findall(pattern, script)
    return json.loads(found.translate(str.maketrans("{}()", "[][]")))


TREES = [("E8", "spivakovsky", 100), ("x_1^2+x_2^3*x_3+x_3^4", "zeillinger", 100)]
TREES += [("x^4+x*y^3+y^2*z^2+z^5+w^7", "zeillinger", 3)]  # cut, and its cones do not glue


@pytest.mark.parametrize(("start", "host", "depth"), TREES)
def test_scripts_hold_what_the_tree_holds(start, host, depth):
    tree = resgym.resolution_tree(start, host, max_depth=depth)
    fan, words, root = tree.fan(), {}, np.array(tree.root.points)
    known = {divisor.ray: divisor[1:3] for divisor in tree.divisors()}
    names = {"space": lambda text: text, "PolynomialRing": lambda *_: str, "QQ": None}
    names |= {"Fan": lambda *both: both, "Cone": lambda rays: {*map(tuple, rays)}}
    exec(tree.to_script("sage"), names)
    assert names["rays"] == [*map(list, fan.rays)]
    if fan.glues:
        assert names["fan"] == (names["cones"], names["rays"])
    else:
        assert "fan" not in names
        assert names["cones"] == [{fan.rays[i] for i in cone} for cone in fan.cones]
    for ray, orders in zip(fan.rays, names["orders"], strict=True):
        if sum(ray) > 1:
            assert tuple(orders) == known.pop(ray)
    assert not known
    with pytest.warns(CoefficientWarning):
        read = resgym.parse(names["germ"], tree.variables)
    assert sorted(read) == sorted(tree.root.points)

    words["m2"] = tree.to_script("m2")
    charts = lists(words["m2"], r"charts = (\{.*\})")
    assert [each[:2] for each in charts] == [[c.number, c.parent or 0] for c in tree]
    for (_, _, rays), chart, cone in zip(charts, tree, chart_rays(tree), strict=True):
        assert rays == [*map(list, cone)]
        assert {*chart.points} <= {*map(tuple, (root @ np.array(rays).T).tolist())}
    words["jl"], words["pl"] = tree.to_script("jl"), tree.to_script("pl")
    cones = [*map(list, fan.cones)]
    assert lists(words["m2"], "fanCones = (.*)") == cones
    assert lists(words["jl"], "cone in (.*[])])]\n") == cones
    assert lists(words["pl"], r"\$cones = (.*);") == cones
    assert ("new Cone" in words["pl"]) == ("positive_hull" in words["jl"]) == (not fan.glues)
    assert ("normalToricVariety(" in words["m2"]) == fan.glues
    assert lists(words["pl"], r"Matrix<Int>\((.*)\)\)") == [*map(list, tree.root.points)]


@pytest.mark.parametrize(
    "start",
    [
        "x*z^2 + x^2*y + y*z^2 + x*y^2",  # (x + y) (z^2 + xy) with ones
        "x^3 + z^5 + y^3 + x^2*y + x*y^2",  # (x + y)^2 (x + 3y) + 2z^5 with 1, 2, 3, 5, 7
    ],
)
def test_coefficients_that_are_written_are_generic(start):
    sympy = pytest.importorskip("sympy")
    tree = resgym.resolution_tree(start, "spivakovsky")
    for ending in ("sing", "m2"):
        text = re.search("germ = (.*?);?\n", tree.to_script(ending))[1].replace("^", "**")
        assert not tree.invariants(sympy.sympify(text)).generic
    cut = resgym.resolution_tree("x^3 + y^3", max_depth=0).to_script("sing")
    assert "// coefficients that may not be generic\n" in cut


def test_titles_stay_in_comments():
    tree = resgym.resolution_tree("A2")
    tree.title = "one\nimport os\rsystem"
    for ending, mark in (("sing", "//"), ("m2", "--"), ("pl", "#")):
        lines = tree.to_script(ending).splitlines()
        assert all(line.startswith(mark) for line in lines[:4])
        assert "system" in lines[2]


@pytest.mark.parametrize(
    "variables",
    ["s,t,I", "h,j,e", "lambda,germ,space", "x,x_1,y", "f,g,i", "x,y,z", "x_1,x_2,x_12"],
)
def test_variables_clash_with_no_name_of_the_program(variables):
    tree = resgym.resolution_tree(resgym.parse("[[2,0,0],[0,2,0],[0,0,2]]", variables), "all_coord")
    kept = variables in ("x,y,z", "x_1,x_2,x_12")
    for ending in ("sing", "m2", "sage", "jl"):
        script = tree.to_script(ending)
        assert ("the variables are" in script) == (not kept)
        read = resgym.parse(script[script.index("\n", 1) :])
        assert read.variables == (tuple(variables.split(",")) if kept else ("x_1", "x_2", "x_3"))
        assert read.generators == ({(2, 0, 0): 1, (0, 2, 0): 2, (0, 0, 2): 3},)
