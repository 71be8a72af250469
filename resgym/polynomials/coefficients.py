"""Polynomials with coefficients, through SymPy: are they nondegenerate on a face?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from resgym.polynomials.monomials import Point


def rational_terms(polynomial: Any, variables: Sequence[str]) -> dict[Point, Any]:
    """Return the coefficients of a SymPy polynomial by exponents.

    Args:
        polynomial: an expression or ``Poly`` with rational coefficients.
        variables: the names of its variables, in the order of the axes.

    Raises:
        TypeError: it is not a SymPy object.
        ValueError: it is not a polynomial in these variables with rational coefficients.
    """
    if not hasattr(polynomial, "free_symbols"):
        raise TypeError(f"polynomial must be a SymPy expression, got {type(polynomial).__name__}")
    import sympy

    symbols = sympy.symbols(list(variables))
    try:
        return dict(sympy.Poly(polynomial.as_expr(), *symbols, domain="QQ").terms())
    except (sympy.PolynomialError, sympy.CoercionFailed):
        raise ValueError(
            f"polynomial must be one in {', '.join(variables)} with rational coefficients, "
            f"got {polynomial}"
        ) from None


def is_degenerate(terms: Mapping[Point, Any]) -> bool:
    """Return whether a polynomial and its derivatives have a common zero without coordinate 0.

    Args:
        terms: coefficients by exponents. For a face of a Newton polyhedron take the exponents in a
            basis of its lattice, so that there are as many variables as the face has dimensions.
    """
    import sympy

    if len(terms) == 1:
        return False
    u = sympy.symbols(f"u:{len(next(iter(terms)))}")
    poly = sympy.Poly(dict(terms), *u).terms_gcd()[1]
    inverse = sympy.Symbol("t")
    torus = sympy.prod(u) * inverse - 1
    basis = sympy.groebner([poly, *map(poly.diff, u), torus], *u, inverse, order="grevlex")
    return basis.exprs != [1]
