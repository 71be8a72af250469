"""Conditions on metrics, for curricula and for stopping early.

In configuration files a condition is a mapping: ``{condition: bound, field: rho/choose_first,
lower: 0.15}`` or ``{condition: converged, field: rho/score, window: 5, tolerance: 0.002}``.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from sb3_ext.callbacks.base import from_data
from sb3_ext.config.checks import check_count, check_number
from sb3_ext.config.registry import Registry

__all__ = ["CONDITIONS", "Bound", "Condition", "Converged", "parse_conditions"]

CONDITIONS: Registry[type[Condition]] = Registry("condition")


class Condition(ABC):
    """Something about the values that one metric takes one after the other.

    Args:
        field: name of the metric, such as ``rho/choose_first`` or ``updates``.
    """

    def __init__(self, field: str) -> None:
        if not isinstance(field, str) or not field:
            raise ValueError(f"field must be the name of a metric, got {field!r}")
        self.field = field
        self._noted: dict[str, Any] = {}  # plain data

    def observe(self, values: Mapping[str, float]) -> None:
        """Takes note of new values; metrics that are not there have none."""
        if self.field in values:
            self._observe(float(values[self.field]))

    @abstractmethod
    def _observe(self, value: float) -> None:
        """Takes note of a new value."""

    @property
    @abstractmethod
    def met(self) -> bool:
        """Whether the condition holds now."""

    def state_dict(self) -> dict[str, Any]:
        """What has been noted, as plain data."""
        return copy.deepcopy(self._noted)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Puts back what `state_dict` gave."""
        self._noted = {name: copy.deepcopy(state[name]) for name in self._noted}


@CONDITIONS.register("bound")
class Bound(Condition):
    """The newest values lie between two bounds.

    Args:
        field: name of the metric.
        lower: smallest value that counts; None for no such bound.
        upper: largest value that counts; None for no such bound.
        times: how many values in a row have to lie between them.

    Raises:
        ValueError, TypeError: no bound at all, or an upper one below the lower one.
    """

    def __init__(
        self, field: str, lower: float | None = None, upper: float | None = None, times: int = 1
    ) -> None:
        super().__init__(field)
        if lower is None and upper is None:
            raise ValueError(f"bound of {field}: give lower, upper or both")
        self.lower = None if lower is None else check_number("lower", lower)
        self.upper = None if upper is None else check_number("upper", upper)
        if self.lower is not None and self.upper is not None and self.upper < self.lower:
            raise ValueError(f"upper must be at least lower ({lower:g}), got {upper:g}")
        self.times = check_count("times", times)
        self._noted = {"in_a_row": 0}

    def _observe(self, value: float) -> None:
        above = self.lower is None or value >= self.lower
        below = self.upper is None or value <= self.upper
        self._noted["in_a_row"] = self._noted["in_a_row"] + 1 if above and below else 0

    @property
    def met(self) -> bool:  # noqa: D102
        return bool(self._noted["in_a_row"] >= self.times)


@CONDITIONS.register("converged")
class Converged(Condition):
    """The newest values are all about the same.

    Args:
        field: name of the metric.
        window: how many of the newest values are looked at, at least 2.
        tolerance: largest distance from their mean, in the metric's own unit.
        confidence: share of them that must keep to it, above 0 and at most 1.
        warmup: values that are left out at the beginning.

    Raises:
        ValueError, TypeError: a number out of its range.
    """

    def __init__(
        self,
        field: str,
        window: int = 10,
        tolerance: float = 0.01,
        confidence: float = 0.9,
        warmup: int = 0,
    ) -> None:
        super().__init__(field)
        self.window = check_count("window", window, low=2)
        self.tolerance = check_number("tolerance", tolerance, low=0)
        self.confidence = check_number("confidence", confidence, low=0, high=1, above=True)
        self.warmup = check_count("warmup", warmup, low=0)
        self._noted = {"seen": 0, "values": []}

    def _observe(self, value: float) -> None:
        self._noted["seen"] += 1
        if self._noted["seen"] > self.warmup:
            self._noted["values"] = [*self._noted["values"], value][-self.window :]

    @property
    def met(self) -> bool:  # noqa: D102
        values = self._noted["values"]
        if len(values) < self.window:
            return False
        mean = sum(values) / self.window
        near = sum(abs(value - mean) <= self.tolerance for value in values)
        return near >= self.confidence * self.window


def parse_conditions(value: Any, name: str = "until") -> list[Condition]:
    """Conditions from objects or mappings, one or a list of them; errors as `from_data`."""
    items = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return [_parse(item, name) for item in items]


def _parse(item: Any, name: str) -> Condition:
    if isinstance(item, Condition):
        return item
    try:
        return from_data(CONDITIONS, "condition", item)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
