"""Checks of numbers from configuration files, with one-line errors."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

LARGEST_COUNT = 2**62
"""Larger whole numbers do not fit into tensors."""


def shown(value: object) -> str:
    """Format a value for an error, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def one_line(error: BaseException) -> str:
    """What an error says, on one line; of a long line the beginning and the end."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 2000 else f"{text[:1000]} ... {text[-500:]}"


def numeric_string_hint(value: Any) -> str:
    """Explain why a number may have arrived as a string; empty for other values."""
    try:
        number = float(value) if isinstance(value, str) and len(value) <= 40 else math.nan
    except ValueError:
        return ""
    if not math.isfinite(number):
        return ""
    return " (a string in YAML: leave out the quotes, and write 1.0e-4 for 1e-4)"


def check_number(
    name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, above: bool = False
) -> float:
    """A finite number from ``low`` (excluded if ``above``) to ``high``; no boolean, no string.

    Raises:
        TypeError: the value is not a number.
        ValueError: the value is a number written as a string, not finite, or out of bounds.
    """
    hint = numeric_string_hint(value)
    if hint:
        raise ValueError(f"{name} must be a number, got the string {shown(value)}{hint}")
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:  # a whole number of more than 308 digits, too long to be shown
        raise ValueError(f"{name} must be a number below 1e308, got a greater one") from None
    below = number <= low if above else number < low
    if not math.isfinite(number) or below or number > high:
        opening = "(" if above or low == -math.inf else "["
        closing = ")" if high == math.inf else "]"
        raise ValueError(f"{name} must lie in {opening}{low:g}, {high:g}{closing}, got {value!r}")
    return number


def check_count(name: str, value: Any, low: int = 1) -> int:
    """A whole number from ``low`` to `LARGEST_COUNT`; 1.0e5, as YAML gives it, is one.

    Raises:
        TypeError: the value is not a number.
        ValueError: the value is a string, not whole, too small or too large.
    """
    number = check_number(name, value)
    if number != int(number) or number < low:
        raise ValueError(f"{name} must be a whole number of at least {low}, got {value!r}")
    if number > LARGEST_COUNT:
        raise ValueError(f"{name} must be at most {LARGEST_COUNT}, got {value!r}")
    return int(number)
