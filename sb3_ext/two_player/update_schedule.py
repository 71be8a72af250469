"""Which role is updated in which step of the trainer; `docs/two_player.md` shows the YAML forms.

A schedule here is a function of the trainer's total step counter, so phases go on where they were
after a resume and across calls of `train`. `phases.py` has one that follows the evaluations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sb3_ext.config.arguments import from_data
from sb3_ext.config.checks import check_count
from sb3_ext.config.registry import Registry, unknown_word
from sb3_ext.config.sections import errors_of

UPDATE_SCHEDULES: Registry[type[UpdateSchedule]] = Registry("update schedule")


class UpdateSchedule(ABC):
    """Says for one role in which steps it is updated."""

    @abstractmethod
    def is_due(self, role: str, step: int) -> bool:
        """Whether a role is updated in a step; ``step``: those made so far, from 0."""


@UPDATE_SCHEDULES.register("constant")
@dataclass(frozen=True)
class Constant(UpdateSchedule):
    """In every step."""

    def is_due(self, role: str, step: int) -> bool:  # noqa: D102
        return True


@UPDATE_SCHEDULES.register("contiguous_periodic")
@dataclass(frozen=True)
class ContiguousPeriodic(UpdateSchedule):
    """In the steps of each period from `start` up to, but without, `stop`.

    It must hold that 0 <= start < stop <= period.
    """

    period: int
    start: int
    stop: int

    def __post_init__(self) -> None:
        _set_counts(self, period=1, start=0, stop=1)
        if not self.start < self.stop <= self.period:
            given = f"start {self.start}, stop {self.stop}, period {self.period}"
            raise ValueError(f"start < stop <= period must hold, got {given}")

    def is_due(self, role: str, step: int) -> bool:  # noqa: D102
        return self.start <= step % self.period < self.stop


@UPDATE_SCHEDULES.register("alternating_periodic")
@dataclass(frozen=True)
class AlternatingPeriodic(UpdateSchedule):
    """The role `first` in the `first_rounds` first steps of each period, the other in the rest.

    It must hold that 1 <= first_rounds < period.
    """

    period: int
    first_rounds: int
    first: str

    def __post_init__(self) -> None:
        _set_counts(self, period=2, first_rounds=1)
        if self.first_rounds >= self.period:
            raise ValueError(
                f"first_rounds must be below period ({self.period}), got {self.first_rounds}"
            )

    def is_due(self, role: str, step: int) -> bool:  # noqa: D102
        return (step % self.period < self.first_rounds) == (role == self.first)


def _set_counts(schedule: UpdateSchedule, **lowest: int) -> None:
    """Replaces fields by whole numbers: YAML gives 1.0e4 as a float."""
    for name, low in lowest.items():
        object.__setattr__(schedule, name, check_count(name, getattr(schedule, name), low))


def _custom(**given: Any) -> dict[str, UpdateSchedule]:
    schedules = {}
    for role, data in given.items():
        with errors_of(role, ValueError):
            schedules[role] = from_data(UPDATE_SCHEDULES, "schedule", data)
    return schedules


UPDATE_MODES: Registry[Any] = Registry("mode")
"""Forms of `training.updates`: a schedule for both roles, or a function that gives one for each."""

UPDATE_MODES.register("custom", _custom)
UPDATE_MODES.register("interleaved", Constant)
UPDATE_MODES.register("phases", AlternatingPeriodic)


def parse_updates(data: Mapping[str, Any], roles: Sequence[str]) -> dict[str, UpdateSchedule]:
    """One schedule for each of two roles, from `training.updates` of a configuration.

    Raises:
        ValueError, TypeError: a key is missing or unknown, or a value is out of range.
    """
    found = from_data(UPDATE_MODES, "mode", data)
    schedules = found if isinstance(found, dict) else dict.fromkeys(roles, found)
    named = [*schedules, *(s.first for s in schedules.values() if hasattr(s, "first"))]
    for role in named:
        if role not in roles:
            raise ValueError(unknown_word("role", role, roles))
    for role in roles:
        if role not in schedules:
            raise ValueError(f"{role} is missing")
    return schedules
