"""Rational functions of one variable: with rational poles in s, or products in t."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class RationalFunction:
    """A rational function in lowest terms; equal functions compare equal.

    Attributes:
        numerator: a SymPy ``Poly`` in s, where the denominator is the product of (s - a)^n over the
            poles a of order n.
        poles: the poles with their orders.
    """

    numerator: Any
    poles: dict[Fraction, int]

    @classmethod
    def interpolated(
        cls, value: Callable[[int], Fraction], poles: Mapping[Fraction, int]
    ) -> RationalFunction:
        """Return the function with given values at 0, 1, 2, ...

        Its poles must be among ``poles``, with at most these orders. The sum of the orders must be
        no smaller than the degree of the numerator.
        """
        from sympy import QQ, Poly, Symbol

        s = Poly(Symbol("s"), domain=QQ)
        polynomial, basis = 0 * s, s**0
        for k in range(sum(poles.values()) + 1):  # Newton's form
            rest = value(k) * _product(poles, k) - polynomial(k)
            polynomial += basis * (rest / math.factorial(k))
            basis *= s - k
        left = dict(poles)
        for at in poles:
            while left[at] and not polynomial(at):
                polynomial = polynomial.quo(s - at)
                left[at] -= 1
        return cls(polynomial, {at: order for at, order in left.items() if order})

    def __call__(self, s: Fraction | int) -> Fraction:
        """Return the exact value at s.

        Raises:
            ZeroDivisionError: s is a pole.
        """
        return Fraction(str(self.numerator(s))) / _product(self.poles, s)

    def _texts(self) -> tuple[str, list[str]]:
        """Return the numerator, and the factors of the denominator, all with integers."""
        scale = math.prod(at.denominator**order for at, order in self.poles.items())
        whole, numerator = (self.numerator * scale).clear_denoms()
        factors = [
            power_text(f"({_text(at.denominator * self.numerator.gen - at.numerator)})", order)
            for at, order in self.poles.items()
        ]
        return _text(numerator.as_expr()), [str(whole)] * (int(whole) > 1) + factors

    def __str__(self) -> str:
        above, below = self._texts()
        return quotient_text(f"({above})" if below and " " in above else above, below)

    def latex(self) -> str:
        r"""Return LaTeX source without dollars: ``\frac{22s + 31}{(s + 1)(30s + 31)}``."""
        above, below = self._texts()
        text = rf"\frac{{{above}}}{{{''.join(below)}}}" if below else above
        return re.sub(r"\^([0-9]+)", r"^{\1}", text)

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


def power_text(base: str, power: int) -> str:
    """Format a power."""
    return f"{base}^{power}" if power > 1 else base * power


def _product(poles: Mapping[Fraction, int], s: Fraction | int) -> Fraction:
    return math.prod(((s - at) ** order for at, order in poles.items()), start=Fraction(1))


def _text(polynomial: Any) -> str:
    """Format an expression of SymPy such as ``30s^2 - s + 31``."""
    return str(polynomial).replace("**", "^").replace("*", "")
