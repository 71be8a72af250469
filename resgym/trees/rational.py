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
        row = [value(s) * _product(factors.items(), s) for s in range(size)]
        differences = list[Fraction]()
        for k in range(1, size + 1):
            differences.append(row[0])
            row = [(after - before) / k for before, after in pairwise(row)]
        polynomial: list[Fraction] = []  # highest power first
        for s in reversed(range(size)):  # Newton's form, by Horner's rule
            shifted = zip([*polynomial, differences[s]], [Fraction(0), *polynomial], strict=True)
            polynomial = [a - s * b for a, b in shifted]
        left = dict(factors)
        for n, nu in factors:
            while left[n, nu]:
                *quotient, rest = _horner(polynomial, Fraction(-nu, n))
                if rest:
                    break
                polynomial = [each / n for each in quotient]
                left[n, nu] -= 1
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
        return _horner(self.numerator[::-1], Fraction(s))[-1] / _product(self.factors, s)

    @property
    def poles(self) -> dict[Fraction, int]:
        """The poles with their orders."""
        return {Fraction(-nu, n): power for (n, nu), power in self.factors if n}

    def _texts(self) -> tuple[str, list[str]]:
        """Return the numerator, and the factors of the denominator."""
        return _text(self.numerator), [
            f"({_text((nu, n))})^{power}".removesuffix("^1") if n else str(nu)
            for (n, nu), power in self.factors
        ]

    def __str__(self) -> str:
        above, below = self._texts()
        return quotient_text(f"({above})" if below and " " in above else above, below)

    def latex(self) -> str:
        r"""Return LaTeX source without dollars: ``\frac{22s + 31}{(s + 1)(30s + 31)}``."""
        above, below = self._texts()
        text = rf"\frac{{{above}}}{{{''.join(below)}}}" if below else above
        return re.sub(r"\^(\d+)", r"^{\1}", text)

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"


def quotient_text(above: str, below: Sequence[str]) -> str:
    """Format a quotient by a product of factors."""
    product = "".join(below)
    return f"{above}/{f'({product})' if below[1:] else product}" if below else above


def _horner(polynomial: Sequence[Fraction | int], s: Fraction) -> list[Fraction]:
    """The coefficients of the quotient by the factor of the root s, and the value at s."""
    return [*accumulate(polynomial, lambda total, each: total * s + each)]


def _product(factors: Iterable[tuple[Factor, int]], s: Fraction | int) -> Fraction:
    return math.prod(((n * s + nu) ** power for (n, nu), power in factors), start=Fraction(1))


def _text(polynomial: Sequence[int]) -> str:
    """Format a polynomial, given from its constant coefficient up, such as ``30s^2 - s + 31``."""
    terms = [f"{number:+}s^{power}" for power, number in enumerate(polynomial) if number]
    text = "".join(reversed(terms))
    for part, better in ((r"s\^0", ""), (r"\^1\b", ""), (r"\b1s", "s"), (r"(?<=.)([+-])", r" \1 ")):
        text = re.sub(part, better, text)
    return text.lstrip("+")
