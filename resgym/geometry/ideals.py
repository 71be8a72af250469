"""Multiplier ideals of monomial ideals, by Howald's theorem."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

from resgym.game.spec import Point
from resgym.geometry.fan import Face, Ray, dot
from resgym.texts import Data, Facts, Rows, position_pretty

MOST = 1_000_000
"""Numbers of a spectrum, eigenvalues or lattice points, with repetitions."""


def check_number(number: int) -> int:
    """Return a number of things; raise ValueError if it is above `MOST`."""
    if number > MOST:
        raise ValueError(f"exponents, and c, must lead to at most {MOST} numbers, got more")
    return number


@dataclass(frozen=True, repr=False)
class MonomialIdeal(Facts):
    """Invariants of the ideal of some monomials in D variables, see `tree_invariants`.

    Attributes:
        points: the exponents.
        variables: the names of the D axes.
        facets: the primitive normals v of the facets, each with its N, the least <v, p>, if N > 0.
    """

    points: Face
    variables: tuple[str, ...]
    facets: dict[Ray, int]

    most: ClassVar[int] = 0
    """Where jumping numbers end; 0 for ideals, which have no end."""
    shown: ClassVar[Mapping[str, str]] = {
        "log_canonical_threshold": "log canonical threshold",
        "jumping_numbers": "jumping numbers up to the dimension",
    }

    @property
    def about(self) -> tuple[str, str]:
        """What the invariants are of, as a key and a value of `to_dict`."""
        return "ideal of all monomials", f"({position_pretty(self.points, self.variables, ', ')})"

    @property
    def log_canonical_threshold(self) -> Fraction:
        """The least sum(v) / N over the facets (Howald)."""
        return min(Fraction(sum(ray), n) for ray, n in self.facets.items())

    def _heights(self) -> Counter[Fraction]:
        """Return the heights of the points of the open orthant, with their numbers.

        Those of a polynomial are below 1, those of an ideal at most D. The height of p is the least
        <v, p> / N over the facets. Of infinitely many points along an axis, one counts.
        """
        scale = math.lcm(*self.facets.values())
        found, top = [], scale * (self.most or len(self.variables)) + (not self.most)

        def walk(axis: int, levels: list[tuple[int, list[int]]]) -> None:
            if axis == len(self.variables):
                found.append(min(levels)[0])
                check_number(len(found))
                return
            while levels := [(level, row) for level, row in levels if level < top]:
                walk(axis + 1, levels)
                if not any(row[axis] for _, row in levels):
                    break
                levels = [(level + row[axis], row) for level, row in levels]

        rows = [[entry * scale // n for entry in ray] for ray, n in self.facets.items()]
        walk(0, [(sum(row), row) for row in rows])
        return Counter({Fraction(level, scale): n for level, n in Counter(found).items()})

    @property
    def jumping_numbers(self) -> tuple[Fraction, ...]:
        """The jumping numbers of the multiplier ideals, below 1 or, for an ideal, up to D.

        Above D - 1, those of an ideal repeat with period 1 (Ein, Lazarsfeld, Smith, Varolin).

        Raises:
            ValueError: they need over a million lattice points.
        """
        return tuple(sorted(self._heights()))

    def multiplier_ideal(self, c: Fraction | int | str) -> tuple[Point, ...]:
        """Return the exponents of the generators of the multiplier ideal of a^c or f^c.

        ``c`` may be a text such as ``"5/6"``. A float is refused: 2 / 3 is below the number 2/3.

        Raises:
            ValueError: c is not a rational number, is below 0, or at least 1 for a polynomial; or
                the box to search has over a million points.
        """
        fraction = "[0-9]{1,99}(/0*[1-9][0-9]{0,99})?"
        if not re.fullmatch(fraction, str(c)) or Fraction(c) >= (self.most or math.inf):
            raise ValueError(
                f"c must be like 5/6, at least 0 and below {self.most or math.inf}, got {c!r:.60}"
            )
        orders = [(ray, Fraction(c) * n // 1 - sum(ray)) for ray, n in self.facets.items()]

        def inside(point: Point) -> bool:
            return all(dot(ray, point) > order for ray, order in orders)

        # Where no step back is inside, each entry is below one of these.
        bounds = ([order // x + 2 if x else 1 for x in ray] for ray, order in orders)
        tops = [max(1, *each) for each in zip(*bounds, strict=True)]
        check_number(math.prod(tops))
        return tuple(
            p
            for p in product(*map(range, tops))
            if inside(p)
            and not any(x and inside((*p[:i], x - 1, *p[i + 1 :])) for i, x in enumerate(p))
        )

    def to_dict(self) -> Data:
        """Return plain data, with the reason as text where an invariant does not exist."""
        found = dict([self.about])
        for name in self.shown:
            try:
                value = getattr(self, name)
            except ValueError as error:
                value = f"none ({error})"
            if name in ("poles", "candidates"):
                value = {at: {"order": order, "rays": rays} for at, order, rays in value}
            if isinstance(value, dict):
                value = {str(each): number for each, number in value.items()}
            elif not isinstance(value, int):
                value = [*map(str, value)] if type(value) is tuple else str(value)
            found[name] = value
        return found

    def table_rows(self) -> Rows:
        """See `Table`."""
        about, *rows = self.to_dict().items()
        found = [about]
        for name, value in rows:
            if isinstance(value, dict):
                orders = ((k, n["order"] if isinstance(n, dict) else n) for k, n in value.items())
                value = [f"{k} ({n} times)" if n > 1 else k for k, n in orders]
            text = ", ".join(value) if isinstance(value, list) else str(value)
            found.append((self.shown[name], text or "none"))
        return found
