"""Named singularities and families of positions."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from resgym.game.spec import (
    MAX_COORDINATE,
    MAX_DIMENSION,
    MAX_NUM_POINTS,
    check_choice,
    check_integer,
)
from resgym.polynomials.arnold import BIMODAL, EXCEPTIONAL, normal_form
from resgym.polynomials.monomials import Exponents, check_points
from resgym.texts import shown

_LISTED = re.compile(  # sums of them are refused as names, too
    r"\s*(?:[ADE]_?\{?[0-9]{1,18}\}?[\s+,]+)*"
    r"(?:[A-S_U-Za-e]_?\{?[0-9]{1,18}(?:,[0-9]+)?\}?|T[^a-zA-Z+*^;]*)[\s;]*"
)
_FAMILY = re.compile(
    r"\s*(?:bp\(([1-9][0-9]{0,29}(?:,[1-9][0-9]{0,29})*)\)"
    r"|random\((?:(?:(?:points|max|dim)=[0-9]{1,30}(?:,|(?=\))))*)\))\s*"
)
_DRAWS = 10_000
_NUMBERS = 100_000  # most draws, which bounds the time


def is_singularity_name(text: str) -> bool:
    """Return whether a text has the form of a name: ``E8``, ``e_8``, ``Z11``, ``T_{3,4,5}``."""
    return _LISTED.fullmatch(text) is not None


def singularity(name: str) -> Exponents:
    """Return the exponents of a singularity of Arnold's lists, in its usual normal form.

    Args:
        name: ``A1``, ``A_1``, ``d4``, ``E8``, ... A_n for n >= 1 is x^2+y^2+z^(n+1), D_n for n >= 4
            is x^2+y^2*z+z^(n-1), E6 is x^2+y^3+z^4, E7 is x^2+y^3+y*z^3, E8 is x^2+y^3+z^5. Or a
            name of `arnold`, such as ``E12``, ``Z11`` or ``T3,4,5``.

    Raises:
        TypeError: the name is not text.
        ValueError: there is no such singularity.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be text like 'E8', got {shown(name)}")
    plain = re.sub(r"[\s_{}()[\];]", "", name).upper()
    points = normal_form(plain)
    if points is None:
        allowed = "A_n, D_n with n >= 4 (n < 2^59), E6 to E8, P8, X9, J10, T_p,q,r or one like E12"
        raise ValueError(f"name must be {allowed}, got {shown(name)}")
    return _typed(points)


def singularity_names(kind: str = "simple") -> tuple[str, ...]:
    """Return the names of a list.

    Args:
        kind: ``simple``: the sixteen A1 to A8, D4 to D8, E6 to E8. ``exceptional`` or ``bimodal``:
            the fourteen exceptional singularities of modality 1 or 2.
    """
    simple = "A1 A2 A3 A4 A5 A6 A7 A8 D4 D5 D6 D7 D8 E6 E7 E8"
    lists = {"simple": simple.split(), "exceptional": EXCEPTIONAL, "bimodal": BIMODAL}
    return tuple(lists[check_choice("kind", kind, list(lists))])


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
    if not isinstance(text, str):
        raise TypeError(
            f"family must be text like 'random(points=5,max=5,dim=3)', got {shown(text)}"
        )
    check_integer("seed", seed, -(2**63), 2**63)
    found = _FAMILY.fullmatch(text.replace(" ", "").lower())
    if found is None:
        allowed = "random(points=<number>, max=<number>, dim=<number>) or bp(2,3,5)"
        raise ValueError(f"family must be {allowed}, got {shown(text)}")
    if found[1]:
        powers = [*map(int, found[1].split(","))]
        return _typed(
            [power * (axis == row) for axis in range(len(powers))]
            for row, power in enumerate(powers)
        )
    numbers = {key: int(number) for key, number in re.findall("([a-z]+)=([0-9]+)", found[0])}
    given = {"points": 5, "max": 5, "dim": 3} | numbers
    points = check_integer("points", given["points"], 2, MAX_NUM_POINTS)
    top = check_integer("max", given["max"], 1, MAX_COORDINATE)
    dimension = check_integer("dim", given["dim"], 2, MAX_DIMENSION)
    draws = min(_DRAWS, 1 + _NUMBERS // (points * dimension))
    generator = random.Random(f"random:{seed}")
    for _ in range(draws):
        rows = [tuple(generator.randint(0, top) for _ in range(dimension)) for _ in range(points)]
        lowest = tuple(map(min, zip(*rows, strict=True)))
        if lowest not in rows and len(set(rows)) == points:
            return Exponents(rows)
    raise ValueError(
        f"no unfinished position with points={points}, max={top}, dim={dimension} in "
        f"{draws} draws; allow larger values or fewer points"
    )


def _typed(rows: Iterable[Sequence[int]]) -> Exponents:
    """Return the exponents of the sum of monomials."""
    points = check_points(rows)
    return Exponents(points, generators=[dict.fromkeys(points, Fraction(1))])
