"""Degenerate faces, against the definition in the polynomial's own variables."""

from itertools import product

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from resgym.trees.nondegeneracy import degenerate_faces

x, y, z = sympy.symbols("x y z")


def by_definition(polynomial, heaviest):
    """Faces that positive weights up to a number see, and a Gröbner basis for each."""
    poly = sympy.Poly(polynomial)
    terms = dict(poly.terms())
    faces = set()
    for weights in product(range(1, heaviest + 1), repeat=len(poly.gens)):
        levels = {p: sum(map(int.__mul__, weights, p)) for p in terms}
        faces.add(tuple(sorted(p for p in terms if levels[p] == min(levels.values()))))
    found = []
    for face in sorted(faces):
        part = sympy.Poly({p: terms[p] for p in face}, *poly.gens)
        inverse = sympy.Symbol("inverse")
        equations = [part, *(v * part.diff(v).as_expr() for v in poly.gens)]
        equations.append(inverse * sympy.prod(poly.gens) - 1)
        if sympy.groebner(equations, *poly.gens, inverse, order="grevlex").exprs != [1]:
            found.append(face)
    return tuple(found)


@pytest.mark.parametrize(
    ("polynomial", "faces"),
    [
        (x**2 + y**3 + z**5, []),
        (x**2 + x * y + y**2, []),
        (x**2 + 2 * x * y + y**2, [[(0, 2), (1, 1), (2, 0)]]),
        ((x + y) ** 2 + z**3, [[(0, 2, 0), (1, 1, 0), (2, 0, 0)]]),
        ((x**2 - y**3) ** 2 + x * y**7, [[(0, 6), (2, 3), (4, 0)]]),
        ((x * y + z**2) ** 2 + x**7 + y**7, [[(0, 0, 4), (1, 1, 2), (2, 2, 0)]]),
        (x**3 + y**3 + z**3 + x * y * z, []),
        (x**3 + y**3 + z**3 - 3 * x * y * z, [[(0, 0, 3), (0, 3, 0), (1, 1, 1), (3, 0, 0)]]),
        (sympy.Rational(1, 4) * x**2 + x * y**2 + y**4, [[(0, 4), (1, 2), (2, 0)]]),
    ],
)
def test_known_cases(polynomial, faces):
    expected = tuple(tuple(face) for face in faces)
    assert degenerate_faces(polynomial) == expected
    assert by_definition(polynomial, 6) == expected


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(any),
        st.sampled_from([-2, -1, 1, 2, 3]),
        min_size=2,
        max_size=5,
    )
)
@settings(max_examples=40, deadline=None)
def test_random_polynomials_in_two_variables(terms):
    polynomial = sympy.Poly(terms, x, y)
    assert degenerate_faces(polynomial) == by_definition(polynomial, 6)


@pytest.mark.parametrize(
    ("polynomial", "error", "message"),
    [
        ("x^2+y^3", TypeError, "polynomial must be a SymPy expression, got str"),
        (x + y + 1, ValueError, "polynomial must vanish at the origin"),
        (x**2 + x, ValueError, "polynomial must have 2 to 10 variables, got 1"),
        (sympy.sqrt(2) * x + y, ValueError, "polynomial must be one with rational"),
        (sympy.sin(x) + y, ValueError, "polynomial must be one"),
        (x ** (10**19) + y, ValueError, "must hold integers"),
    ],
)
def test_bad_input(polynomial, error, message):
    with pytest.raises(error, match=message):
        degenerate_faces(polynomial)


def test_a_tree_that_is_too_large_is_refused():
    with pytest.raises(ValueError, match="max_nodes=3"):
        degenerate_faces(x**5 + y**7, max_nodes=3)
    assert degenerate_faces(x**150 + y) == ()  # a deep tree of few charts
