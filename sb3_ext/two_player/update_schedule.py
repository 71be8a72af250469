"""Which role is updated in which step of the trainer; `docs/two_player.md` shows the YAML forms.

A schedule is a function of the trainer's total step counter, so phases go on where they were after
a resume and across calls of `train`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sb3_ext.config.checks import check_count
from sb3_ext.config.registry import Registry, unknown_word

__all__ = [
    "UPDATE_SCHEDULES",
    "AlternatingPeriodic",
    "Constant",
    "ContiguousPeriodic",
    "UpdateSchedule",
    "parse_updates",
]

UPDATE_SCHEDULES: Registry[type[UpdateSchedule]] = Registry("update schedule")


@dataclass(frozen=True)
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


def parse_updates(data: Mapping[str, Any], roles: Sequence[str]) -> dict[str, UpdateSchedule]:
    """One schedule for each of two roles, from `training.updates` of a configuration.

    Raises:
        ValueError, TypeError: a key is missing or unknown, or a value is out of range.
    """
    if not isinstance(data, Mapping):
        raise TypeError(f"must be a mapping with the key mode, got {data!r}")
    if "mode" not in data:
        raise ValueError("mode is missing; choices: custom, interleaved, phases")
    mode = data["mode"]
    rest = {key: value for key, value in data.items() if key != "mode"}
    if mode == "interleaved":
        return dict.fromkeys(roles, _read("constant", rest))
    if mode == "phases":
        if rest.get("first", roles[0]) not in roles:
            raise ValueError(unknown_word("role of first", rest["first"], roles))
        return dict.fromkeys(roles, _read("alternating_periodic", rest))
    if mode == "custom":
        _require_keys(rest, roles)
        return {role: _read_custom(role, rest[role]) for role in roles}
    raise ValueError(unknown_word("mode", mode, ("custom", "interleaved", "phases")))


def _read_custom(role: str, data: Any) -> UpdateSchedule:
    if not isinstance(data, Mapping) or "schedule" not in data:
        raise ValueError(f"{role} must be a mapping with the key schedule, got {data!r}")
    arguments = {key: value for key, value in data.items() if key != "schedule"}
    return _read(data["schedule"], arguments)


def _read(name: str, arguments: Mapping[str, Any]) -> UpdateSchedule:
    kind = UPDATE_SCHEDULES.resolve(name)
    _require_keys(arguments, [each.name for each in fields(kind)])
    return kind(**arguments)


def _require_keys(given: Mapping[str, Any], needed: Sequence[str]) -> None:
    for key in given:
        if key not in needed:
            raise ValueError(unknown_word("key", key, needed))
    for key in needed:
        if key not in given:
            raise ValueError(f"{key} is missing")
