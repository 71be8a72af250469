"""Exponents of monomials: the list that parsing returns, its checks, and monomials as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from reprlib import repr as brief
from typing import Any

from resgym.game.spec import MAX_DIMENSION, check_coordinates

Point = tuple[int, ...]

_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉"
_RAISED = str.maketrans("0123456789", _SUPERSCRIPTS)
_LOWERED = str.maketrans("0123456789", _SUBSCRIPTS)
PLAIN_DIGITS = str.maketrans(_SUPERSCRIPTS + _SUBSCRIPTS, "0123456789" * 2)


class Exponents(list[Point]):
    """A list of exponent tuples with the names of its variables.

    It equals the plain list of the same tuples and is accepted wherever points are.

    Args:
        points: exponent tuples of one length D.
        variables: D names; by default ``x, y, z, w``, or ``x_1`` to ``x_D`` for more than four.

    Attributes:
        exponents_only: the polynomial had coefficients other than 1.
    """

    exponents_only = False

    def __init__(self, points: Iterable[Point], variables: Sequence[str] | None = None) -> None:
        super().__init__(points)
        dimension = len(self[0]) if self else 0
        if variables is None:
            indexed = [f"x_{axis}" for axis in range(1, dimension + 1)]
            variables = "xyzw"[:dimension] if dimension <= 4 else indexed
        self.variables: tuple[str, ...] = tuple(variables)

    @property
    def dimension(self) -> int:
        """Number of variables D."""
        return len(self.variables)

    def __str__(self) -> str:
        return " + ".join(monomial_text(point, self.variables) for point in self)

    def pretty(self) -> str:
        """Format for reading: ``x² + y³ + z⁵``; ``x^2-y^3`` gives ``x² + y³ (exponents only)``."""
        mark = " (exponents only)" if self.exponents_only else ""
        return position_pretty(self, self.variables) + mark


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


def position_pretty(points: Iterable[Point], variables: Sequence[str]) -> str:
    """Join the monomials of a position with `` + ``."""
    return " + ".join(monomial_pretty(point, variables) for point in points)


def variable_pretty(name: str) -> str:
    """Lower the index of a variable's name: ``x_1`` becomes ``x₁``."""
    letter, mark, index = name.partition("_")
    return letter + index.translate(_LOWERED) if mark and index.isdigit() else name


def check_points(points: Any) -> list[Point]:
    """Check exponent tuples from lists, arrays or tensors.

    Args:
        points: a sequence of rows, each of 2 to 10 whole numbers from 0 to 2^59.

    Raises:
        TypeError: the points are not a sequence of rows, or an entry is not a whole number.
        ValueError: there are no points, rows differ in length, or an entry is out of range.
    """
    rows: list[Point] = []
    for index, row in enumerate(_entries(points, "points", "a list of exponent lists")):
        where = f"points[{index}]"
        values = _entries(row, where, "a list of exponents")
        if rows and len(values) != len(rows[0]):
            raise ValueError(
                f"{where} must have {len(rows[0])} exponents like points[0], got {len(values)}"
            )
        rows.append(check_coordinates(values, where))
    if not rows:
        raise ValueError("points must have at least one exponent list, got an empty list")
    dimension = len(rows[0])
    if not 2 <= dimension <= MAX_DIMENSION:
        raise ValueError(f"points must have 2 to {MAX_DIMENSION} variables, got {dimension}")
    return rows


def _entries(values: Any, name: str, allowed: str) -> list[Any]:
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, (str, bytes, dict)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be {allowed}, got {brief(values)}")
    return list(values)
