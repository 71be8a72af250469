"""Rational functions of one variable s whose denominators are products of linear factors."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise

Factor = tuple[int, int]
"""The linear factor N s + nu as (N, nu), or a positive integer as (0, nu)."""


@dataclass(frozen=True)
class RationalFunction:
    """A rational function in lowest terms; equal functions compare equal.

    Attributes:
        numerator: integer coefficients, the constant one first.
        factors: each factor (N, nu) of the denominator, which stands for N s + nu, with its power.
    """

    numerator: tuple[int, ...]
    factors: tuple[tuple[Factor, int], ...]

    @classmethod
    def interpolated(
        cls, value: Callable[[int], Fraction], factors: Mapping[Factor, int]
    ) -> RationalFunction:
        """Return the function with given values at 0, 1, 2, ...

        The product of ``factors``, without common divisors, must be a denominator of the function,
        and no smaller in degree than the numerator.
        """
        size = sum(factors.values()) + 1
        row = [value(s) * _product(factors.items(), Fraction(s)) for s in range(size)]
        differences = list[Fraction]()
        while row:
            differences.append(row[0] / math.factorial(len(differences)))
            row = [after - before for before, after in pairwise(row)]
        polynomial: list[Fraction] = []  # highest power first
        for s in reversed(range(size)):  # Newton's form, by Horner's rule
            polynomial = [
                a - s * b
                for a, b in zip([*polynomial, Fraction(0)], [Fraction(0), *polynomial], strict=True)
            ]
            polynomial[-1] += differences[s]
        left = dict(factors)
        for n, nu in factors:
            while n and left[n, nu]:
                *quotient, rest = _horner(polynomial, Fraction(-nu, n))
                if rest:
                    break
                polynomial = [each / n for each in quotient]
                left[n, nu] -= 1
        left[0, 1] = 0
        scale = math.lcm(*(each.denominator for each in polynomial))
        if scale > 1:
            left[0, scale] = 1
        numerator = [int(each * scale) for each in reversed(polynomial)]
        while numerator[1:] and not numerator[-1]:
            numerator.pop()
        return cls(tuple(numerator), tuple(sorted(each for each in left.items() if each[1])))

    def __call__(self, s: Fraction | int) -> Fraction:
        """Return the exact value at s.

        Raises:
            ZeroDivisionError: s is a pole.
        """
        *_, above = _horner(self.numerator[::-1], Fraction(s))
        return above / _product(self.factors, Fraction(s))

    @property
    def poles(self) -> dict[Fraction, int]:
        """The poles, from the largest down, with their orders."""
        found = {Fraction(-nu, n): power for (n, nu), power in self.factors if n}
        return dict(sorted(found.items(), reverse=True))

    def _texts(self) -> tuple[str, list[str]]:
        """Return the numerator, and the factors of the denominator."""
        powers = [(nu, n, "" if power == 1 else f"^{power}") for (n, nu), power in self.factors]
        below = [f"({_text((nu, n))}){power}" if n else str(nu) for nu, n, power in powers]
        return _text(self.numerator), below

    def __str__(self) -> str:
        above, below = self._texts()
        if below and " " in above:
            above = f"({above})"
        text = "".join(below)
        return "/".join([above, f"({text})" if below[1:] else text]) if below else above

    def latex(self) -> str:
        r"""Return LaTeX source without dollars: ``\frac{22s + 31}{(s + 1)(30s + 31)}``."""
        above, below = self._texts()
        text = rf"\frac{{{above}}}{{{''.join(below)}}}" if below else above
        return re.sub(r"\^(\d+)", r"^{\1}", text)

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"


def _horner(polynomial: Sequence[Fraction | int], s: Fraction) -> list[Fraction]:
    """The coefficients of the quotient by the factor of the root s, and the value at s."""
    return list(accumulate(polynomial, lambda total, each: total * s + each, initial=Fraction(0)))[
        1:
    ]


def _product(factors: Iterable[tuple[Factor, int]], s: Fraction) -> Fraction:
    return math.prod(((n * s + nu) ** power for (n, nu), power in factors), start=Fraction(1))


def _text(polynomial: Sequence[int]) -> str:
    """Format a polynomial, given from its constant coefficient up, such as ``30s^2 - s + 31``."""
    terms = []
    for power, number in reversed([*enumerate(polynomial)]):
        if number:
            variable = "" if not power else "s" if power == 1 else f"s^{power}"
            shown = "" if abs(number) == 1 and power else abs(number)
            terms.append(f" {'-' if number < 0 else '+'} {shown}{variable}")
    text = "".join(terms)
    return text[3:] if text.startswith(" +") else text[1:].replace(" ", "", 1)
