"""Arnold's lists of singularities in three variables.

V. I. Arnold, Local normal forms of functions, Inventiones math. 35 (1976): parabolic and hyperbolic
T, the fourteen exceptional unimodal and the fourteen exceptional bimodal singularities. Parameters
are 0, and 1 for x*y*z of T. Another parameter adds a monomial above the compact faces of the
Newton polyhedron, which can change trees. Forms in two variables get z^2 added.
"""

from __future__ import annotations

import re

from resgym.game.spec import MAX_COORDINATE
from resgym.polynomials.monomials import Point
from resgym.polynomials.reader import Reader
from resgym.texts import shown


def _table(lines: str) -> dict[str, str]:
    rows = (line.split(" = ") for line in lines.strip().splitlines())
    return {name.strip(): form for name, form in rows}


_OTHERS = _table("""
    E6 = x^2 + y^3 + z^4
    E7 = x^2 + y^3 + y*z^3
    E8 = x^2 + y^3 + z^5
    P8 = x^3 + y^3 + z^3
    X9 = x^4 + y^4 + z^2
    J10 = x^3 + y^6 + z^2
""")
EXCEPTIONAL = _table("""
    E12 = x^3 + y^7 + z^2
    E13 = x^3 + x*y^5 + z^2
    E14 = x^3 + y^8 + z^2
    Z11 = x^3*y + y^5 + z^2
    Z12 = x^3*y + x*y^4 + z^2
    Z13 = x^3*y + y^6 + z^2
    W12 = x^4 + y^5 + z^2
    W13 = x^4 + x*y^4 + z^2
    Q10 = x^3 + y^4 + y*z^2
    Q11 = x^3 + y^2*z + x*z^3
    Q12 = x^3 + y^5 + y*z^2
    S11 = x^4 + y^2*z + x*z^2
    S12 = x^2*y + y^2*z + x*z^3
    U12 = x^3 + y^3 + z^4
""")
"""The fourteen exceptional unimodal singularities; the number is the Milnor number."""

BIMODAL = _table("""
    E18 = x^3 + y^10 + z^2
    E19 = x^3 + x*y^7 + z^2
    E20 = x^3 + y^11 + z^2
    Z17 = x^3*y + y^8 + z^2
    Z18 = x^3*y + x*y^6 + z^2
    Z19 = x^3*y + y^9 + z^2
    W17 = x^4 + x*y^5 + z^2
    W18 = x^4 + y^7 + z^2
    Q16 = x^3 + y*z^2 + y^7
    Q17 = x^3 + y*z^2 + x*y^5
    Q18 = x^3 + y*z^2 + y^8
    S16 = x^2*z + y*z^2 + x*y^4
    S17 = x^2*z + y*z^2 + y^6
    U16 = x^3 + x*z^2 + y^5
""")
"""The fourteen exceptional bimodal singularities; the number is the Milnor number."""

_SERIES = re.compile("([AD])([0-9]{1,18})")
_TRIPLE = re.compile(r"T(\d{1,18}),(\d{1,18}),(\d{1,18})")


def normal_form(name: str) -> list[Point] | None:
    """Return the exponents of a normal form, or None for an unknown name.

    Args:
        name: ``A3``, ``D4``, ``E6`` to ``E8``, ``P8``, ``X9``, ``J10``, one of `EXCEPTIONAL` or
            `BIMODAL`, or ``T3,4,5`` for x^3+y^4+z^5+x*y*z, in capitals and without spaces.

    Raises:
        ValueError: 1/p + 1/q + 1/r is above 1, or a number is out of range.
    """
    form = {**_OTHERS, **EXCEPTIONAL, **BIMODAL}.get(name)
    if found := _SERIES.fullmatch(name):
        letter, n = found[1], int(found[2])
        if {"A": 1, "D": 4}[letter] <= n < MAX_COORDINATE:
            form = f"x^2 + y^2 + z^{n + 1}" if letter == "A" else f"x^2 + y^2*z + z^{n - 1}"
    elif found := _TRIPLE.fullmatch(name):
        p, q, r = map(int, found.groups())
        if min(p, q, r) < 2 or p * q + q * r + p * r > p * q * r or max(p, q, r) > MAX_COORDINATE:
            raise ValueError(
                f"name must be T_p,q,r, up to 2^59, 1/p + 1/q + 1/r <= 1, got {shown(name)}"
            )
        form = f"x^{p} + y^{q} + z^{r} + x*y*z"
    return [*Reader(form, [(0, len(form))], "xyz").polynomials[0]] if form else None
