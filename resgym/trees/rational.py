"""Rational functions of one variable: with rational poles in s, or products in t."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, dropwhile
from operator import not_
from typing import Any


@dataclass(frozen=True)
class RationalFunction:
    """A rational function in lowest terms; equal functions compare equal.

    Attributes:
        numerator: the coefficients of the numerator, highest power first, where the denominator
            is the product of (s - a)^n over the poles a of order n.
        poles: the poles with their orders.
    """

    numerator: tuple[Fraction, ...]
    poles: dict[Fraction, int]

    @classmethod
    def interpolated(
        cls, value: Callable[[int], Fraction], poles: Mapping[Fraction, int]
    ) -> RationalFunction:
        """Return the function with given values at 0, 1, 2, ...

        Its poles must be among ``poles``, with at most these orders. The sum of the orders must be
        no smaller than the degree of the numerator.
        """
        zero = Fraction(0)
        polynomial, basis = [zero], [Fraction(1)]  # highest power first
        for s in range(sum(poles.values()) + 1):  # Newton's form
            rest = value(s) * _product(poles, s) - _horner(polynomial, s)[-1]
            step = rest / math.factorial(s)
            added = (a + step * b for a, b in zip(polynomial, basis, strict=True))
            polynomial = [zero, *added]
            basis = [a - s * b for a, b in zip([*basis, zero], [zero, *basis], strict=True)]
        left = dict(poles)
        for at in poles:
            while left[at] and not (divided := _horner(polynomial, at))[-1]:
                polynomial = divided[:-1]
                left[at] -= 1
        numerator = tuple(dropwhile(not_, polynomial))
        return cls(numerator, {at: order for at, order in left.items() if order})

    def __call__(self, s: Fraction | int) -> Fraction:
        """Return the exact value at s.

        Raises:
            ZeroDivisionError: s is a pole.
        """
        return _horner(self.numerator, s)[-1] / _product(self.poles, s)

    def _texts(self, form: str) -> tuple[str, list[str]]:
        """Return the numerator, and the factors of the denominator, all with integers."""
        scale = math.prod(at.denominator**order for at, order in self.poles.items())
        whole = math.lcm(*((each * scale).denominator for each in self.numerator))
        factors = [
            power_text(f"({_polynomial_text((at.denominator, -at.numerator), form)})", order, form)
            for at, order in self.poles.items()
        ]
        numerator = [int(each * scale * whole) for each in self.numerator]
        return _polynomial_text(numerator, form), [str(whole)] * (whole > 1) + factors

    def __str__(self) -> str:
        above, below = self._texts("{}^{}")
        return quotient_text(f"({above})" if below and " " in above else above, below)

    def latex(self) -> str:
        r"""Return LaTeX source without dollars: ``\frac{22s + 31}{(s + 1)(30s + 31)}``."""
        above, below = self._texts("{}^{{{}}}")
        return rf"\frac{{{above}}}{{{''.join(below)}}}" if below else above

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"


class MonodromyZeta(tuple[tuple[int, int], ...]):
    """The product of (1 - t^N)^e over pairs (N, e)."""

    def __str__(self) -> str:
        above, below = (
            [power_text(f"(1 - {power_text('t', n)})", e * sign) for n, e in self if e * sign > 0]
            for sign in (1, -1)
        )
        return quotient_text("".join(above) or "1", below)


def quotient_text(above: str, below: Sequence[str]) -> str:
    """Format a quotient by a product of factors."""
    product = "".join(below)
    return f"{above}/{f'({product})' if below[1:] else product}" if below else above


def power_text(base: str, power: int, form: str = "{}^{}") -> str:
    """Format a power; ``form`` is a template for exponents above 1."""
    return form.format(base, power) if power > 1 else base * power


def _horner(polynomial: Iterable[Any], s: Fraction | int) -> list[Any]:
    """The coefficients of the quotient by the factor of the root s, and the value at s."""
    return [*accumulate(polynomial, lambda total, each: total * s + each)]


def _product(poles: Mapping[Fraction, int], s: Fraction | int) -> Fraction:
    return math.prod(((s - at) ** order for at, order in poles.items()), start=Fraction(1))


def _polynomial_text(coefficients: Sequence[int], form: str) -> str:
    """Format a polynomial, given from its highest power down, such as ``30s^2 - s + 31``."""
    text = ""
    for power, number in enumerate(reversed(coefficients)):
        digits = "" if power and abs(number) == 1 else abs(number)
        if number:
            text = f" {'+-'[number < 0]} {digits}{power_text('s', power, form)}{text}"
    return text[1:3].strip("+ ") + text[3:]
