"""Input as it is typed, and what is said about input that is wrong."""

import json
import warnings
from contextlib import suppress
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from resgym.polynomials.monomials import Exponents
from resgym.polynomials.parse import CoefficientWarning, ConstantWarning, ParseError, parse

E8 = [(2, 0, 0), (0, 3, 0), (0, 0, 5)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x^2+w^3+y", [(2, 0, 0), (0, 0, 3), (0, 1, 0)]),
        ("x_10+x_2^2+x_1", [(0, 0, 1), (0, 2, 0), (1, 0, 0)]),
        ("x ^ 2\t+ y^{3} + z^(5) ", E8),
        ("x^2, y^3, x^2", [(2, 0), (0, 3)]),
        ("x^2\ry^3\u2028z^5", E8),
        (f"{' ' * 15_000}ideal(x,y){' ' * 15_000};", [(1, 0), (0, 1)]),
        (f"x^2+y{' ' * 15_000}={' ' * 15_000}0", [(2, 0), (0, 1)]),
    ],
)
def test_points_are_in_the_order_of_the_text_and_axes_in_that_of_the_variables(text, expected):
    assert parse(text) == expected


def sage(prime=0):
    """As Sage's polynomials are."""
    ring = {"variable_names": lambda: ("xbar", "s", "t0"), "characteristic": lambda: prime}
    return SimpleNamespace(
        exponents=lambda: E8,
        parent=lambda: SimpleNamespace(**ring),
        coefficients=lambda: ["1", "-1/2", "3"],
    )


def test_sage():
    with pytest.warns(CoefficientWarning):
        found = parse(sage())
    assert (found, found.variables) == (E8, ("xbar", "s", "t0"))
    assert found.generators == ({(2, 0, 0): 1, (0, 3, 0): Fraction(-1, 2), (0, 0, 5): 3},)
    with pytest.raises(ValueError, match="points must be rational"):
        parse(sage(prime=7))


@pytest.mark.parametrize(
    "source", [tuple(E8), np.array(E8), torch.tensor(E8), list(map(np.array, E8)), Exponents(E8)]
)
def test_lists(source):
    assert parse(source) == E8


def test_variables():
    assert parse("b^2+a").variables == ("a", "b")
    assert parse("x1^2+x_10").variables == ("x_1", "x_10")
    ordered = parse("x^2+z^3", variables="z, x, t")
    assert (ordered, ordered.variables) == ([(0, 2, 0), (3, 0, 0)], ("z", "x", "t"))
    assert parse("[[1,2,0],[0,0,1]]", variables=["a", "b", "c"]).variables == ("a", "b", "c")
    assert parse("E8", "a,b,c").variables == ("a", "b", "c")
    assert parse(parse("x^2+y"), "s,t").generators == ({(2, 0): 1, (0, 1): 1},)
    assert parse([(1, 2, 3, 4)]).variables == ("x", "y", "z", "w")
    assert parse([(1, 2, 3, 4, 5)]).variables == ("x_1", "x_2", "x_3", "x_4", "x_5")


@pytest.mark.parametrize(
    ("text", "category", "pretty"),
    [
        ("x^2-y^3", CoefficientWarning, "x² + y³ (exponents only)"),
        ("(x+y)^2*z", CoefficientWarning, "x²z + xyz + y²z (exponents only)"),
        ("x/3 + y/7 + 2*x/6 - 0.25y - 2/3*x + z", CoefficientWarning, "y + z (exponents only)"),
        ("x^2+y+1", ConstantWarning, "x² + y + 1"),
        ("x^2-x+y^3+x", None, "x² + y³"),
        ("3x/3 + 0.5y + y/2", None, "x + y"),
    ],
)
def test_what_the_game_does_not_see_is_noticed(text, category, pretty):
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        assert parse(text).pretty() == pretty
    assert [each.category for each in noticed] == ([category] if category else [])


def test_files(tmp_path):
    commented = "# E8\nx^2 + y^3   // two terms\n  + z^5\n"
    for name, text in (("a.txt", commented), ("a.json", json.dumps(E8)), ("b.txt", "\ufeffE8\n")):
        (tmp_path / name).write_text(text)
        assert parse(tmp_path / name) == parse(str(tmp_path / name)) == E8
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("x^2 +\n y^? + z\n")
    with pytest.raises(ParseError) as caught:
        parse(wrong)
    assert str(caught.value).splitlines()[1:] == ["   y^? + z", "    ^"]
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    for name, reason in (("missing.txt", "No such file"), ("bytes.txt", "not UTF-8 text")):
        with pytest.raises(ValueError, match=f"cannot be read: {reason}"):
            parse(tmp_path / name)


def test_sympy():
    sympy = pytest.importorskip("sympy")
    x, y, z, a = sympy.symbols("x y z a")
    p, q = sympy.symbols("x10 x9", positive=True)
    free = sympy.Symbol("x", commutative=False)
    for source, variables, terms in (
        (x**2 + y**3 + z**5, "x y z", {(2, 0, 0): 1, (0, 3, 0): 1, (0, 0, 5): 1}),
        (p**2 + q ** (10**9), "x9 x10", {(10**9, 0): 1, (0, 2): 1}),
        (sympy.Poly(x**2 + y, x, y, z), "x y z", {(2, 0, 0): 1, (0, 1, 0): 1}),
    ):
        found = parse(source)
        assert (found.variables, *found.generators) == (tuple(variables.split()), terms)
    assert parse(x**2 + y, variables="y,x") == [(1, 0), (0, 2)]
    for source, terms in (
        ((x + 1.0 * y) ** 2, {(2, 0): 1, (1, 1): 2, (0, 2): 1}),
        (sympy.Eq(x**2, y**3), {(2, 0): 1, (0, 3): -1}),
    ):
        with pytest.warns(CoefficientWarning):
            assert parse(source).generators == (terms,)
    with pytest.warns(CoefficientWarning):
        family = parse(sympy.Poly(x**3 + a * x * y**5 + y**7, x, y))
    assert (family, family.variables) == ([(3, 0), (1, 5), (0, 7)], ("x", "y"))
    assert (family.generators, family.exponents_only) == ((), True)
    for wrong, message in (
        (x + sympy.Symbol("x", positive=True), "variables of different names"),
        *(
            ((x + k * y) ** 2 + y**3, "must be rational")
            for k in (sympy.sqrt(2), sympy.I, sympy.pi)
        ),
        (sympy.Poly(x**2 + y, x, y, modulus=3), "must be rational"),
        *((term + y, "must be a polynomial") for term in (1 / x, sympy.sin(x), free)),
        ((x + y) ** 100_000, "at most 50000 products of terms"),
        ((x + y) ** 99 * (x - y) ** 99 * (y + 1) ** 9, "at most 50000 products of terms"),
        (sympy.Integer(3), "2 to 10 variables, got the constant '3'"),
        (sympy.Poly(x + 1 / y), "must be rational"),  # with the generators x and 1/y
    ):
        with pytest.raises(ValueError, match=message):
            parse(wrong)
    for names in ("x,z", "", 5):
        with pytest.raises(ValueError, match=r"variables (x, z|must be names .* got (''|5)$)"):
            parse(x**2 + y, variables=names)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([[1, 2], [3]], r"points\[1\] must have 2 exponents like points\[0\], got 1"),
        ([[1, 2], [3, -4]], r"points\[1\] must hold integers in 0\.\.2\^59, got -4"),
        ([[2**59 + 1, 0]], "0..2"),
        ([[10**5000, 0]], "got a number of over 99 digits"),
        (f"[[{'1' * 5000}, 0]]", "points must have numbers of at most 100 digits, got more"),
        # Whatever is typed is read or refused at once.
        ("+" * 5000, "more than 150 signs and parentheses inside each other"),
        ("e/+" * 3000 + "e", "more than 150 signs and parentheses inside each other"),
        ("1 " * 24_000, "must have 2 to 10 variables, got 24000"),
        ("(1+x)^100*(1+y)^100", "more than 10000 terms"),
        ("+".join(f"x_{index}" for index in range(60)), "one of the variables x_0, .* at most 52"),
        ("((1+x)^99)^100*y", "more than 50000 products of terms"),
        ("(x+y+z+1)" * 3000, "more than 50000 products of terms"),
        ("x+y+" * 400_000 + "z", "at most 50000 characters"),
        ("random(points=1000,max=1,dim=10)", "in 11 draws"),
    ],
)
def test_bad_values_get_one_clear_line(source, message):
    with pytest.raises(ValueError, match=message) as caught:
        parse(source)
    assert "\n" not in str(caught.value) or isinstance(caught.value, ParseError)


@pytest.mark.parametrize("source", [[[1.5, 2]], [[True, 1]], 7, None, {"x": 2}, [["1", "2"]], b"x"])
def test_bad_types_are_named(source):
    with pytest.raises(TypeError, match="points"):
        parse(source)


points_of = st.integers(2, 10).flatmap(
    lambda d: st.lists(st.tuples(*[st.integers(0, 30)] * d), min_size=1, max_size=6, unique=True)
)


@given(points_of.filter(lambda points: any(map(any, points))))
def test_what_is_written_is_read_back(points):
    written = Exponents(points)
    assert parse(str(written), variables=written.variables) == points
    assert parse(written.pretty(), variables=written.variables) == points
    assert parse(json.dumps(points)) == points


PIECES = [*"xyz019+-*^/()_., []{}=;$²₁", "^99", "x^2", "(x+y)", "ideal ", "ring r=", "[[", "E8"]
texts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=30)


@given(texts, st.integers(1, 400))
def test_any_text_gives_exponents_or_a_value_error(text, times):
    for typed in (text, text * times):
        with warnings.catch_warnings(), suppress(ValueError, TypeError):
            warnings.simplefilter("ignore")
            result = parse(typed)
            assert all(len(point) == len(result.variables) for point in result)
