"""What is true of a polynomial, and what its resolution trees therefore prove."""

from __future__ import annotations

from typing import Any

from resgym.game.exact import corner, prune
from resgym.geometry.fan import compact_cells, degenerate_faces
from resgym.geometry.smooth import full_tree, isolated_fault
from resgym.polynomials.monomials import factored, is_isolated, sympy_poly
from resgym.polynomials.parse import read
from resgym.texts import Data, Facts

_PRINCIPAL = "the ideal of the monomials becomes principal in every final chart"
_CROSSINGS = "over the origin, the total transform has normal crossings in every final chart"


class Examination(Facts, dict[str, Any]):
    """Facts about a polynomial, each with its name."""

    def to_dict(self) -> Data:
        """Return the facts as plain data."""
        return dict(self)


def examine(points: Any) -> Examination:
    """Find out what is true of a polynomial at the origin, and what its trees prove.

    Coefficients that are not known are taken to be generic. Whether a degenerate polynomial of a
    high degree is isolated can take hours.

    Args:
        points: anything that `resgym.parse` reads.

    Returns:
        Whether the polynomial is reduced, convenient, nondegenerate and isolated, with the reason
        where it is not; its Milnor number and log canonical threshold; what a tree proves.

    Raises:
        ValueError: the exponents are too large.
    """
    start = read(points)
    tree = full_tree(start)
    names, minimal = start.variables, prune(start)
    polys = [sympy_poly(terms, names) for terms in start.generators]
    given = ", ".join(map(factored, polys)) or f"{start.pretty()}, with generic coefficients"
    found = Examination({"given": given})
    if not any(minimal[0]):
        found["a tree proves"] = "nothing: f(0) is not 0"
        return found
    if start.ideal:
        found["log canonical threshold of the monomials"] = str(tree.log_canonical_threshold())
        found["a tree proves"] = _PRINCIPAL
        return found
    degenerate = degenerate_faces(compact_cells(tree), start)
    missing = [n for i, n in enumerate(names) if all(p[i] < sum(p) for p in start)]
    # Of a nondegenerate polynomial, only variables can be repeated factors.
    repeated = [f"{names[i]}^{k}" for i, k in enumerate(corner(minimal)) if k > 1]
    fault = isolated_fault(minimal, names)
    if degenerate:
        repeated = [
            factored(f**k) for f, k in polys[0].sqf_list()[1] if k > 1 and not f.coeff_monomial(1)
        ]
        if not fault and not is_isolated(polys[0]):
            fault = "other singular points come arbitrarily close"
    facts = {
        "reduced": ", ".join(repeated),
        "convenient": missing and f"no power of {', '.join(missing)}",
        "nondegenerate": ", ".join(degenerate),
        "isolated": fault,
    }
    found |= {name: f"no: {why}" if why else "yes" for name, why in facts.items()}
    if not degenerate:
        invariants = tree.invariants()
        found["log canonical threshold"] = str(invariants.log_canonical_threshold)
        if not fault:
            found["Milnor number"] = invariants.milnor_number
    found["a tree proves"] = f"{_PRINCIPAL}; nothing about f = 0" if degenerate else _CROSSINGS
    return found
