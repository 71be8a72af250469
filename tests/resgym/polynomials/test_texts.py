"""Texts as people and programs write them: read as what they say, or refused.

The texts are in texts.txt; what a text says stands beside it for SymPy's own parser.
"""

import time
from fractions import Fraction
from functools import partial

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from resgym.polynomials.parse import ParseError, parse
from tests.resgym.tables import rows

pytestmark = pytest.mark.filterwarnings(
    "ignore::resgym.polynomials.parse.CoefficientWarning",
    "ignore::resgym.polynomials.parse.ConstantWarning",
)

table = partial(rows, __file__, "texts.txt")


def same(terms, variables, text):
    """Whether coefficients by exponents are those of a text that SymPy parses."""
    symbols = {name: sympy.Symbol(name) for name in variables}
    local = {**symbols, "lambda_": symbols.get("lambda")}
    other = sympy.Poly(sympy.sympify(text, local), *symbols.values(), domain="QQ")
    expected = {point: Fraction(int(v.p), int(v.q)) for point, v in other.terms() if v}
    return expected == terms


@pytest.mark.parametrize(("text", "meaning"), [*table("polynomials"), *table("ideals")])
def test_what_is_typed_says_what_sympy_reads(text, meaning):
    found, meanings = parse(text), meaning.split(", ")
    for terms, expected in zip(found.generators, meanings, strict=True):
        assert same(terms, found.variables, expected)
    assert found.ideal == (len(meanings) > 1)
    assert found.ideal or [*found] == [*found.generators[0]]


@pytest.mark.parametrize("text", [text for text, _ in table("exponents")])
def test_lists_and_matrices_are_exponents(text):
    found = parse(text)
    assert (found, found.generators) == ([(2, 0, 0), (0, 3, 0), (0, 0, 5)], ())


@pytest.mark.parametrize(
    ("text", "message"), [*table("refused"), ("x^" + "9" * 200 + "+y", "at most 100 digits")]
)
def test_what_is_unclear_is_refused_at_its_character(text, message):
    place, text = text.find("‸"), text.replace("‸", "")
    with pytest.raises(ValueError, match=message) as caught:
        parse(text)
    assert len(str(caught.value)) < 500
    if place >= 0:
        assert isinstance(caught.value, ParseError)
        assert caught.value.position == place
        _, line, caret = str(caught.value).splitlines()
        assert (line, caret) == (f"  {text}", " " * (place + 2) + "^")


@st.composite
def polynomials(draw):
    """Coefficients by exponents."""
    dimension = draw(st.integers(2, 4))
    point = st.tuples(*[st.integers(0, 12)] * dimension).filter(any)
    value = st.fractions(-99, 99, max_denominator=9).filter(bool)
    terms = draw(st.dictionaries(point, value, min_size=1, max_size=5))
    return terms, [f"x_{axis}" for axis in range(1, dimension + 1)]


def written(terms, name="{}", power="^{}", times="*", over="/"):
    """Print terms in a dialect."""
    text = ""
    for point, value in terms.items():
        factors = [
            name.format(axis) + (power.format(exponent) if exponent > 1 else "")
            for axis, exponent in enumerate(point, 1)
            if exponent
        ]
        number = f"{abs(value.numerator)}{over}{value.denominator}"
        text += " -+"[1 + (value > 0)] + times.join([number, *factors])
    return text.lstrip("+")


@given(polynomials())
def test_what_is_printed_in_a_dialect_is_read_back(polynomial):
    terms, names = polynomial
    ring, many = ",".join(names), len(names)
    one = written(terms, "x_{}")
    for text in (
        f"ring r=0,({ring}),ds; poly f={one};",
        f"ring r=0,(x(1..{many})),ws({ring}); poly f={written(terms, 'x({})')};",
        f"ring r=0,({ring.replace('_', '')}),dp; poly f={written(terms, 'x{}')};",
        f"R = QQ[{ring}]\nf = {one} -- {ring}",
        f"R = QQ[x_1..x_{many}]\nI = ideal({one})",
        f"R.<{ring}> = QQ[]\nf = {written(terms, 'x_{}', '**{}')}",
        f"R, x = polynomial_ring(QQ, {names})\nf = {written(terms, 'x[{}]', over='//')}",
        f"f({ring}) := {written(terms, 'x[{}]')};",
    ):
        found = parse(text)
        assert (found.variables, found.generators) == (tuple(names), (terms,))
    latex = written(terms, "x_{{{}}}", "^{{{}}}", " \\cdot ")
    for text in (f"${latex}$", latex.replace("\\cdot", ""), one):
        assert parse(text, names).generators == (terms,)


@given(polynomials(), st.integers(1, 3))
def test_sympy_reads_the_same(polynomial, power):
    terms, names = polynomial
    text = f"({written(terms, 'x_{}', '**{}')})**{power} + x_1*x_2/3"
    found = parse(text, names)
    assert same(found.generators[0], names, text) if found else True
    expanded = sympy.expand(sympy.sympify(text))
    assert parse(expanded, names).generators == found.generators
    assert parse(str(expanded), names).generators == found.generators


HOSTILE = [
    *("(", "[", "{", "x^2^", "(x+", "-", "--", "x ", "x", " ", "\n", "$", "\\", "/*", "//"),
    *("x1", "1e9", "x_", "ring r=0,(", "QQ[", "<x", "\\frac{", "x=", "f:=", '"points": ['),
    *("germ = ", "ﷺ", "²", "(x+y)^99", "((x+y)^9)^", "9^9^9", "ideal(", "1,", "x;", "a.b"),
    *("aring(QQ,", " of "),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_is_refused_at_once_and_briefly(piece):
    start, many = time.monotonic(), piece * (49_000 // len(piece))
    for text in (many, f"x^2+y^3 {many} y", f"{many}x + ideal(x, y)"):
        try:
            shown = parse(text).pretty()[:1]
        except ValueError as error:
            shown = str(error)
        assert len(shown) < 500
    assert time.monotonic() - start < 10
