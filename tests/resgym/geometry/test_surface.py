"""Resolution graphs of surfaces: lists of the literature, and Laufer's formula."""

import re
from fractions import Fraction
from itertools import combinations, islice, product
from math import gcd, lcm, prod
from operator import mul

import pytest

import resgym
from resgym.geometry.fan import eliminate
from tests.resgym.geometry.test_invariants import NAMES, random_positions

DOLGACHEV = """
    E12 2 3 7, E13 2 4 5, E14 3 3 4, Z11 2 3 8, Z12 2 4 6, Z13 3 3 5, Q10 2 3 9,
    Q11 2 4 7, Q12 3 3 6, W12 2 5 5, W13 3 4 4, S11 2 5 6, S12 3 4 5, U12 4 4 4
"""


def grown(start, host="spivakovsky"):
    return resgym.resolution_tree(start, host, max_depth=1000)


def determinant(graph):
    return abs(eliminate(map(tuple, graph.matrix()))[1])


def assert_star(graph, genus, self_intersection, arms):
    found = graph.seifert()
    assert found == (genus, self_intersection, tuple(sorted(arms)))
    assert found.euler_number < 0
    assert determinant(graph) == -found.euler_number * prod(alpha for alpha, _ in arms)


@pytest.mark.parametrize("name", resgym.singularity_names())
def test_simple_singularities_have_dynkin_diagrams(name):
    graph = grown(name).surface_graph()
    letter, n = name[0], int(name[1:])
    assert ([curve[1:3] for curve in graph.curves], len(graph.edges)) == ([(-2, 0)] * n, n - 1)
    if letter == "A":
        assert determinant(graph) == n + 1
    else:
        arms = (2, 2, n - 2) if letter == "D" else (2, 3, n - 3)
        assert_star(graph, 0, -2, [(alpha, alpha - 1) for alpha in arms])
    assert grown(name, "zeillinger").surface_graph() == graph


@pytest.mark.parametrize("line", DOLGACHEV.split(","))
def test_exceptional_singularities_have_dolgachev_numbers(line):
    name, *numbers = line.split()
    assert_star(grown(name).surface_graph(), 0, -1, [(int(alpha), 1) for alpha in numbers])


@pytest.mark.parametrize("powers", [(2, 3, 7), (3, 4, 5), (4, 6, 9), (4, 5, 30), (5, 5, 5)])
def test_sums_of_powers_have_the_known_seifert_invariants(powers):
    """Neumann and Raymond 1978."""
    graph, whole = grown(f"bp({','.join(map(str, powers))})").surface_graph(), lcm(*powers)
    alphas = []
    sides = 0
    for one, other in combinations(powers, 2):
        alphas += [whole // lcm(one, other)] * gcd(one, other)
        sides += gcd(one, other)
    found = graph.seifert()
    assert [each for each in sorted(alphas) if each > 1] == [alpha for alpha, _ in found.arms]
    assert 2 - 2 * found.genus == sides - prod(powers) // whole
    assert found.euler_number == Fraction(-prod(powers), whole**2)
    assert_star(graph, *found)


@pytest.mark.parametrize(
    ("start", "curves", "edges"),
    [
        ("T3,3,3", [(-3, 1)], 0),
        ("T2,3,6", [(-1, 1)], 0),
        ("T3,4,5", [(-4, 0), (-3, 0), (-2, 0)], 3),
        ("T2,3,7", [(-5, 0), (-1, 0)], 2),
        ("x+y^2+z^3", [], 0),
    ],
)
def test_other_graphs(start, curves, edges):
    graph = grown(start).surface_graph()
    assert sorted(curve[1:3] for curve in graph.curves) == curves
    assert len(graph.edges) == edges


def canonical_square(graph):
    """K^2, where N and ν are those of the adjunction formula for every curve."""
    known = [2 * genus - 2 - number for _, number, genus, *_ in graph.curves]
    canonical = [nu - n - 1 for *_, n, nu in graph.curves]
    assert known == [sum(map(mul, row, canonical)) for row in graph.matrix()]
    return sum(map(mul, known, canonical))


def assert_laufer(start, host="spivakovsky"):
    tree = grown(start, host)
    found = tree.invariants()
    genus = sum(number for a, number in found.spectrum.items() if a <= 1)
    for minimal in (True, False):
        graph = tree.surface_graph(minimal)
        euler = sum(2 - 2 * curve.genus for curve in graph.curves) - len(graph.edges)
        if not graph.curves:
            euler = 1  # a smooth point
        assert found.milnor_number + 1 == euler + canonical_square(graph) + 12 * genus


def random_isolated(number):
    some = (points for points in random_positions(10**6, True) if len(points[0]) == 3)
    return islice(some, number)


MANY = [*NAMES, "T3,3,3", "T2,4,5", "T4,5,6", "T3,4,5", "T2,3,7"]


@pytest.mark.parametrize(
    ("names", "hosts", "number"),
    [
        (["A3", "D7", "E8", "Z11", "S17", "U16", "T3,4,5", "T2,3,9"], ["spivakovsky"], 3),
        pytest.param(MANY, ["spivakovsky", "zeillinger"], 250, marks=pytest.mark.long),
    ],
)
def test_laufers_formula(names, hosts, number):
    for name, host in product(names, hosts):
        assert_laufer(name, host)
    for points in random_isolated(number):
        assert_laufer(points)


def centres(picture):
    return [complex(*map(float, at)) for at in re.findall('cx="(.+?)" cy="(.+?)"', picture)]


def side(a, b, c):
    return ((b - a).conjugate() * (c - a)).imag


@pytest.mark.parametrize("start", ["x+y^2+z^3", "A1", "E8", "T2,3,7", "T4,4,5", "bp(4,6,9)"])
def test_pictures_have_curves_apart_and_edges_without_crossings(start):
    graph = grown(start).surface_graph()
    text = graph.to_svg()
    assert text in graph._repr_html_()
    spots = centres(text)
    assert len(spots) == len(graph.curves)
    assert all(abs(one - other) > 48 for one, other in combinations(spots, 2))
    for pair in combinations({*graph.edges}, 2):
        a, b, c, d = (spots[place] for edge in pair for place in edge)
        assert side(a, b, c) * side(a, b, d) >= 0 or side(c, d, a) * side(c, d, b) >= -1e-6


@pytest.mark.parametrize("start", ["E8", "x^3+y^5+z^7"])
def test_arms_are_straight(start):
    graph = grown(start).surface_graph()
    spots = centres(graph.to_svg())
    for place, spot in enumerate(spots):
        beside = [spots[sum(edge) - place] for edge in graph.edges if place in edge]
        assert len(beside) != 2 or sum(beside) / 2 == pytest.approx(spot, abs=0.2)


def test_a_picture_has_numbers_and_a_caption_inside():
    picture, title = grown("A1").surface_graph().to_svg(), "Minimal good resolution of x² + y² + z²"
    assert f">{title}<" in picture
    assert ">2, 3<" in picture
    assert float(re.search('width="(.+?)"', picture)[1]) > 6 * len(title)


def test_graphs_are_written():
    graph = grown("T2,3,7").surface_graph()
    assert graph.matrix() == [[-5, 2], [2, -1]]
    assert graph.to_dot().count("c0 -- c1;") == graph.to_svg().count('stroke-width="7.5"') + 1 == 2
    assert '[label="-3 [1]\\n3, 3"]' in grown("T3,3,3").surface_graph().to_dot()
