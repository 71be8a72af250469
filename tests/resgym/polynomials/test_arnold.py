"""Arnold's lists, against the Milnor numbers that their names say."""

import pytest
import sympy

import resgym
from resgym.polynomials.singularities import singularity, singularity_names


@pytest.mark.parametrize("name", [*singularity_names("exceptional"), *singularity_names("bimodal")])
def test_the_number_of_a_name_is_the_milnor_number(name):
    """Milnor and Orlik 1970: the product of 1/w - 1 for quasi-homogeneous forms of degree 1."""
    weights = sympy.Matrix(singularity(name)).LUsolve(sympy.ones(3, 1))
    assert sympy.prod([1 / weight - 1 for weight in weights]) == int(name[1:])


@pytest.mark.parametrize("name", singularity_names("exceptional"))
def test_the_number_of_a_name_is_the_dimension_of_the_milnor_algebra(name):
    variables = sympy.symbols("x y z")
    form = sum(sympy.Mul(*map(sympy.Pow, variables, point)) for point in singularity(name))
    basis = sympy.groebner([form.diff(v) for v in variables], *variables, order="grevlex")
    leading = [sympy.Poly(g, *variables).monoms(order="grevlex")[0] for g in basis.exprs]
    top = max(max(point) for point in leading) + 1
    free = [
        (a, b, c)
        for a in range(top)
        for b in range(top)
        for c in range(top)
        if not any(all(m <= e for m, e in zip(lead, (a, b, c), strict=True)) for lead in leading)
    ]
    assert len(free) == int(name[1:])


def test_the_least_trees_of_the_fourteen():
    depths = {name: resgym.solve(name).value for name in singularity_names("exceptional")}
    nodes = [resgym.solve(name, objective="nodes").value for name in depths]
    assert (sum(depths.values()), sum(nodes)) == (73, 344)
    spivakovsky = [n for n in depths if resgym.resolution_tree(n, "spivakovsky").depth == depths[n]]
    assert spivakovsky == ["Q11", "Q12", "S12", "U12"]


@pytest.mark.parametrize("text", ["T3,4,5", " T_{3,4,5} ", "t_3,4,5"])
def test_triples(text):
    assert singularity(text) == [(3, 0, 0), (0, 4, 0), (0, 0, 5), (1, 1, 1)]


def test_parse_reads_the_names_in_capitals():
    for text in ("Z11", "Q_10", "T3,4,5", "S_{12}", "E12"):
        assert resgym.parse(text) == singularity(text)
    assert resgym.parse("z11+w12") == [(11, 0), (0, 12)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("E15", "near it are E14, E13, E12"),
        ("U13", "near it are U12, U16"),
        ("T2,3,5", "1/p"),
        ("T3,4", "T_p,q,r"),
        ("T3,4,9999999999999999999", "T_p,q,r"),
        ("A0", "A_n with n >= 1"),
        ("A999999999999999999", "n < 2^59"),
        ("", "got ''"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(name, message):
    with pytest.raises(ValueError, match=r"^name must be") as caught:
        singularity(name)
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", ["unimodal", []])
def test_unknown_lists_are_refused(kind):
    with pytest.raises(ValueError, match="kind must be one of "):
        singularity_names(kind)
