"""Polynomials with coefficients, through SymPy: their factors and singular points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from resgym.polynomials.monomials import Point

Coefficients = Mapping[Point, Any]
"""Coefficients by exponents."""


def sympy_poly(terms: Coefficients, variables: Sequence[str]) -> Any:
    """Return a polynomial as a SymPy ``Poly``."""
    import sympy

    return sympy.Poly(dict(terms), *sympy.symbols(list(variables)))


def factored(poly: Any) -> str:
    """Return the text of a ``Poly`` in factors, such as ``(x^2 + y^3)^2``."""
    return str(poly.as_expr().factor()).replace("**", "^")


def is_degenerate(terms: Coefficients) -> bool:
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


def is_isolated(poly: Any) -> bool:
    """Return whether a ``Poly`` has no other singular points arbitrarily close to 0.

    It is not if, for every variable, an element of the saturation of the Jacobian ideal by it does
    not vanish at 0.
    """
    import sympy

    inverse, jacobian = sympy.Dummy(), [poly, *map(poly.diff, poly.gens)]
    return all(
        any(
            each.degree(inverse) < 1 and each.coeff_monomial(1)
            for each in sympy.groebner([*jacobian, 1 - inverse * x], inverse, *poly.gens).polys
        )
        for x in poly.gens
    )
