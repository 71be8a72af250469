"""Named singularities, Arnold's lists among them, and families of positions.

V. I. Arnold, Local normal forms of functions, Inventiones math. 35 (1976): parabolic and hyperbolic
T, the fourteen exceptional unimodal and the fourteen exceptional bimodal singularities. Parameters
are 0, and 1 for x*y*z of T. A parameter of an exceptional one adds a monomial above the compact
faces of the Newton polyhedron, which can change trees. Forms in two variables get z^2 added.
"""

from __future__ import annotations

import random
import re
from fractions import Fraction

from resgym.game.exact import corner
from resgym.game.spec import (
    MAX_COORDINATE,
    MAX_DIMENSION,
    MAX_NUM_POINTS,
    check_choice,
    check_integer,
)
from resgym.polynomials.monomials import Exponents, check_points
from resgym.polynomials.reader import Reader
from resgym.texts import shown


def _table(lines: str) -> dict[str, str]:
    return dict(re.findall("(\\w+) = (.+)", lines))


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

_LISTED = re.compile(  # sums of them are refused as names, too
    r"\s*(?:[ADE]_?\{?[0-9]{1,18}\}?[\s+,]+)*"
    r"(?:[A-S_U-Za-e]_?\{?[0-9]{1,18}(?:,[0-9]+)?\}?|T[^a-zA-Z+*^;]*)[\s;]*"
)
_FAMILY = re.compile(
    r"\s*(?:bp\(([1-9][0-9]{0,29}(?:,[1-9][0-9]{0,29})*)\)"
    r"|random\((?:(?:(?:points|max|dim)=[0-9]{1,30}(?:,|(?=\))))*)\))\s*"
)
_NUMBERS = 100_000  # drawn at most, which bounds the time
_SERIES = re.compile("([AD])([0-9]{1,18})")
_TRIPLE = re.compile(r"T(\d{1,18}),(\d{1,18}),(\d{1,18})")


def named_position(text: str) -> Exponents | None:
    """Return what a text in the form of a name is, such as ``e_8`` or ``bp(2,3,5)``; else None."""
    if _LISTED.fullmatch(text):
        return singularity(text)
    return random_family(text) if re.match(r"(?i)\s*(?:random|bp)\s*\(", text) else None


def singularity(name: str) -> Exponents:
    """Return the exponents of a singularity of Arnold's lists, in its usual normal form.

    Args:
        name: ``A1``, ``A_1``, ``d4``, ``E8``, ... A_n for n >= 1 is x^2+y^2+z^(n+1), D_n for n >= 4
            is x^2+y^2*z+z^(n-1), E6 is x^2+y^3+z^4, E7 is x^2+y^3+y*z^3, E8 is x^2+y^3+z^5. Or
            ``P8``, ``X9``, ``J10``, ``T3,4,5`` for x^3+y^4+z^5+x*y*z, or one of `EXCEPTIONAL` or
            `BIMODAL`, such as ``E12``.

    Raises:
        TypeError: the name is not text.
        ValueError: there is no such singularity; 1/p + 1/q + 1/r of T_p,q,r is above 1; or a number
            is out of range.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be text like 'E8', got {shown(name)}")
    plain = re.sub(r"[\s_{}()[\];]", "", name).upper()
    form = (_OTHERS | EXCEPTIONAL | BIMODAL).get(plain)
    if found := _SERIES.fullmatch(plain):
        letter, n = found[1], int(found[2])
        if {"A": 1, "D": 4}[letter] <= n < MAX_COORDINATE:
            form = f"x^2 + y^2 + z^{n + 1}" if letter == "A" else f"x^2 + y^2*z + z^{n - 1}"
    elif found := _TRIPLE.fullmatch(plain):
        p, q, r = map(int, found.groups())
        if min(p, q, r) < 2 or p * q + q * r + p * r > p * q * r or max(p, q, r) > MAX_COORDINATE:
            raise ValueError(
                "name must be T_p,q,r with p, q, r in 2..2^59 and 1/p + 1/q + 1/r <= 1, "
                f"got {shown(name)}"
            )
        form = f"x^{p} + y^{q} + z^{r} + x*y*z"
    if form is None:
        raise ValueError(
            "name must be A_n, D_n with n >= 4 (n < 2^59), E6 to E8, P8, X9, J10, T_p,q,r or one "
            f"like E12, got {shown(name)}"
        )
    (terms,) = Reader(form, [(0, len(form))], "xyz").polynomials
    return Exponents(terms, generators=[terms])


def singularity_names(kind: str = "simple") -> tuple[str, ...]:
    """Return the names of a list.

    Args:
        kind: ``simple``: the sixteen A1 to A8, D4 to D8, E6 to E8. ``exceptional`` or ``bimodal``:
            the fourteen exceptional singularities of modality 1 or 2.
    """
    simple = "A1 A2 A3 A4 A5 A6 A7 A8 D4 D5 D6 D7 D8 E6 E7 E8"
    lists = {"simple": simple.split(), "exceptional": EXCEPTIONAL, "bimodal": BIMODAL}
    return tuple(lists[check_choice("kind", kind, lists)])


def random_family(text: str, seed: int = 0) -> Exponents:
    """Return a position of a family, given by its parameters.

    Args:
        text: ``random(points=5, max=5, dim=3)``: this many points, uniform on 0..max on every axis,
            drawn again while one of them is <= all others (a finished game). Or ``bp(2,3,5)``:
            the Brieskorn-Pham polynomial x^2+y^3+z^5.
        seed: the same seed gives the same position on every machine.

    Raises:
        ValueError: the family or a parameter is unknown, or a parameter is out of range.
    """
    check_integer("seed", seed, -(2**63), 2**63)
    found = isinstance(text, str) and _FAMILY.fullmatch(text.replace(" ", "").lower())
    if not found:
        raise ValueError(
            "family must be random(points=<number>, max=<number>, dim=<number>) or bp(2,3,5), got "
            f"{shown(text)}"
        )
    if found[1]:
        powers = [*map(int, found[1].split(","))]
        axes = range(len(powers))
        points = check_points([powers[row] * (axis == row) for axis in axes] for row in axes)
        return Exponents(points, generators=[dict.fromkeys(points, Fraction(1))])
    given = {"points": 5, "max": 5, "dim": 3} | {
        key: int(text) for key, text in re.findall("([a-z]+)=([0-9]+)", found[0])
    }
    number = check_integer("points", given["points"], 2, MAX_NUM_POINTS)
    top = check_integer("max", given["max"], 1, MAX_COORDINATE)
    dimension = check_integer("dim", given["dim"], 2, MAX_DIMENSION)
    draws = 1 + _NUMBERS // (number * dimension)
    draw = random.Random(f"random:{seed}").randint
    for _ in range(draws):
        rows = [tuple(draw(0, top) for _ in range(dimension)) for _ in range(number)]
        if corner(rows) not in rows and len(set(rows)) == number:
            return Exponents(rows)
    raise ValueError(
        f"no unfinished position with points={number}, max={top}, dim={dimension} in "
        f"{draws} draws; allow larger values or fewer points"
    )
