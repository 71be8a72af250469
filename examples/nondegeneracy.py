"""Whether a polynomial is non-degenerate for its Newton polyhedron (Kouchnirenko 1976)."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import sympy

from resgym.trees.fan import chart_rays
from resgym.trees.growth import resolution_tree

Face = tuple[tuple[int, ...], ...]


def degenerate_faces(polynomial: Any, *, max_nodes: int = 10_000) -> tuple[Face, ...]:
    """Compact faces of the Newton polyhedron on which a polynomial is degenerate; none: it is not.

    A polynomial is degenerate on a face if its terms there and all their logarithmic derivatives
    have a common zero with no coordinate 0. Every compact face is seen in a chart of a resolution
    of its monomials, as the points that are least in some coordinates of the chart; what is left
    there has as many variables as the face has dimensions. Exact, over the complex numbers.

    Args:
        polynomial: a SymPy expression or ``Poly`` with rational coefficients.
        max_nodes: charts of Spivakovsky's tree at most.

    Returns:
        The exponents of each degenerate face.

    Raises:
        TypeError: it is not a SymPy polynomial.
        ValueError: coefficients are not rational, the constant term is not 0, fewer than 2 or more
            than 10 variables occur, or the tree has more charts.
    """
    terms = _terms(polynomial)
    tree = resolution_tree([*terms], "spivakovsky", max_depth=max_nodes, max_nodes=max_nodes)
    if not tree.complete:
        raise ValueError(f"polynomial needs a tree of more than max_nodes={max_nodes} charts")
    faces: dict[Face, dict[tuple[int, ...], Any]] = {}
    for chart, rays in zip(tree.charts, chart_rays(tree), strict=True):
        if chart.children:
            continue
        places = {p: tuple(sum(map(int.__mul__, p, ray)) for ray in rays) for p in terms}
        least = tuple(map(min, zip(*places.values(), strict=True)))
        for size in range(len(rays), 0, -1):
            for axes in combinations(range(len(rays)), size):
                if not all(any(rays[axis][i] for axis in axes) for i in range(len(rays))):
                    continue  # the face is not compact
                face = [p for p in terms if all(places[p][a] == least[a] for a in axes)]
                others = [a for a in range(len(rays)) if a not in axes]
                # With most axes first, the first one seen has the fewest variables.
                local = {tuple(places[p][a] - least[a] for a in others): terms[p] for p in face}
                faces.setdefault(tuple(sorted(face)), local)
    return tuple(face for face, local in sorted(faces.items()) if _is_degenerate(local))


def _terms(polynomial: Any) -> dict[tuple[int, ...], Any]:
    if not isinstance(polynomial, (sympy.Expr, sympy.Poly)):
        raise TypeError(f"polynomial must be a SymPy expression, got {type(polynomial).__name__}")
    gens = getattr(polynomial, "gens", None) or sorted(polynomial.free_symbols, key=str)
    if not 2 <= len(gens) <= 10:
        raise ValueError(f"polynomial must have 2 to 10 variables, got {len(gens)}")
    try:
        terms = dict(sympy.sring(polynomial.as_expr(), *gens, domain=sympy.QQ)[1].terms())
    except (sympy.PolynomialError, sympy.CoercionFailed, ValueError):
        raise ValueError(
            f"polynomial must be one with rational coefficients: {polynomial}"
        ) from None
    if not all(any(point) for point in terms):
        raise ValueError("polynomial must vanish at the origin, got a constant term")
    return terms


def _is_degenerate(terms: dict[tuple[int, ...], Any]) -> bool:
    """Whether a polynomial and its logarithmic derivatives have a common zero in the torus."""
    dimension = len(next(iter(terms)))
    if dimension == 0 or len(terms) == 1:
        return False
    u = sympy.symbols(f"u:{dimension}")
    poly = sympy.Poly(terms, *u)
    if dimension == 1:
        # Its zeros are not 0: the least exponent is.
        return not poly.is_sqf
    derivatives = [poly.diff(x) * sympy.Poly(x, *u) for x in u]
    inverse = sympy.Symbol("t")
    torus = sympy.Poly(inverse * sympy.prod(u) - 1, *u, inverse)
    basis = sympy.groebner([poly, *derivatives, torus], *u, inverse, order="grevlex")
    return basis.exprs != [1]


def main() -> dict[str, tuple[Face, ...]]:
    found = {}
    for text in ("x**2 + y**3 + z**5", "(x + y)**2 + z**3", "(x**2 - y**3)**2 + x*y**7"):
        found[text] = degenerate_faces(sympy.sympify(text))
        print(f"{text}: {found[text] or 'non-degenerate'}")
    return found


if __name__ == "__main__":
    main()
