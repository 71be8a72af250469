"""One rule for how often something happens, with its unit in the name."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sb3_ext.config.checks import check_number


class Every:
    """Is due each time a counter passes another multiple of its period.

    Counters are the algorithm's own, so the rhythm goes on unbroken after a resume; seconds count
    from construction or from the last time it was due.

    Args:
        updates: gradient updates between two times.
        transitions: transitions between two times.
        seconds: seconds between two times. Exactly one of the three is given, above 0.

    Raises:
        TypeError, ValueError: not exactly one period, or one that is no positive number.
    """

    def __init__(
        self,
        *,
        updates: int | None = None,
        transitions: int | None = None,
        seconds: float | None = None,
    ) -> None:
        periods = {"updates": updates, "transitions": transitions, "seconds": seconds}
        given = {unit: period for unit, period in periods.items() if period is not None}
        if len(given) != 1:
            raise ValueError(f"every: need exactly one of {', '.join(periods)}, got {given or 0}")
        ((self.unit, self.period),) = given.items()
        check_number(f"every.{self.unit}", self.period, low=0, above=True)
        self._last: float = time.monotonic() if self.unit == "seconds" else 0

    def due(self, *, updates: int, transitions: int) -> bool:
        """Whether it is time again, after so many in all; asking counts as having acted."""
        before = self._last
        if self.unit == "seconds":
            now = time.monotonic()
            if now - before >= self.period:
                self._last = now
        else:
            # A counter that went back belongs to a new run of the same object.
            self._last = (updates if self.unit == "updates" else transitions) // self.period
        return self._last > before

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs; seconds start afresh after a resume."""
        return {} if self.unit == "seconds" else {"last": self._last}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where `state_dict` was taken."""
        if self.unit != "seconds":
            self._last = state["last"]

    def __repr__(self) -> str:
        return f"Every({self.unit}={self.period})"


def parse_every(value: Every | Mapping[str, Any]) -> Every:
    """An `Every`, also from the form that it has in configuration files: ``{updates: 1000}``.

    Raises:
        TypeError, ValueError: the value is neither, has an unknown unit, or as for `Every`.
    """
    if isinstance(value, Every):
        return value
    if not isinstance(value, Mapping):
        raise TypeError(f"every must be a mapping like {{updates: 1000}}, got {value!r}")
    unknown = sorted(set(map(str, value)) - {"updates", "transitions", "seconds"})
    if unknown:
        raise ValueError(f"every must have updates, transitions or seconds, got {unknown}")
    return Every(**value)
