"""Monomials as text: for input, for reading, for LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from resgym.game.plain import Point
from resgym.texts import printable

AXIS_NAMES = "xyzwvutsrq"

_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉"
_RAISED = str.maketrans("0123456789", _SUPERSCRIPTS)
_LOWERED = str.maketrans("0123456789", _SUBSCRIPTS)
PLAIN_DIGITS = str.maketrans(_SUPERSCRIPTS + _SUBSCRIPTS, "0123456789" * 2)

_SPECIAL = {each: rf"\{each}" for each in "&%$#_{}"} | {each: rf"\{each}{{}}" for each in "^~"}
_SPECIAL |= {"\\": r"\textbackslash{}", "…": r"\dots{}"}
_SPECIAL |= {"<": "$<$", ">": "$>$", "±": r"$\pm$", "≠": r"$\neq$"}


class Formula(str):
    """A formula for reading: ``x₁² + y⁵``."""


def latex(text: str) -> str:
    """Return text for LaTeX: special characters are escaped, a `Formula` is set between dollars."""
    dollar, inner = ("$", "") if isinstance(text, Formula) else ("", "$")

    def script(found: re.Match[str]) -> str:
        mark = "^" if found[0][0] in _SUPERSCRIPTS else "_"
        return f"{inner}{mark}{{{found[0].translate(PLAIN_DIGITS)}}}{inner}"

    escaped = "".join(_SPECIAL.get(each, each) for each in printable(text))
    return dollar + re.sub(f"[{_SUPERSCRIPTS}]+|[{_SUBSCRIPTS}]+", script, escaped) + dollar


def monomial_text(point: Point, variables: Sequence[str]) -> str:
    """Format a monomial as input: ``x^2*y``; ``1`` for the constant."""
    powers = [pair for pair in zip(variables, point, strict=True) if pair[1]]
    return "*".join(name if power == 1 else f"{name}^{power}" for name, power in powers) or "1"


def monomial_pretty(point: Point, variables: Sequence[str]) -> str:
    """Format a monomial for reading: ``x²y``; ``1`` for the constant."""
    factors = [
        variable_pretty(name) + ("" if power == 1 else str(power).translate(_RAISED))
        for name, power in zip(variables, point, strict=True)
        if power
    ]
    return "".join(factors) or "1"


def position_pretty(points: Iterable[Point], variables: Sequence[str]) -> Formula:
    """Join the monomials of a position with `` + ``."""
    return Formula(" + ".join(monomial_pretty(point, variables) for point in points))


def variable_pretty(name: str) -> str:
    """Lower the index of a variable's name: ``x_1`` becomes ``x₁``."""
    letter, mark, index = name.partition("_")
    return letter + index.translate(_LOWERED) if mark and index.isdigit() else name


def format_axes(axes: Sequence[int], names: Sequence[str] = AXIS_NAMES) -> Formula:
    """Format axes: ``{x, z}`` for the axes 0 and 2."""
    return Formula("{" + ", ".join(names[axis] for axis in axes) + "}")
