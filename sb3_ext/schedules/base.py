"""What schedules share, and how they are read from configuration files.

The schedules themselves are in ``schedules.py``, which is also the place to import from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, cast

from sb3_ext.config.checks import check_count, check_number, numeric_string_hint
from sb3_ext.config.registry import Registry, unknown_word

__all__ = ["SCHEDULES", "UNITS", "Schedule", "Unit", "parse_schedule"]

Unit = Literal["updates", "transitions", "progress"]
UNITS: tuple[Unit, ...] = ("updates", "transitions", "progress")

SCHEDULES: Registry[type[Schedule]] = Registry("schedule")


@dataclass(kw_only=True, repr=False)
class Schedule(ABC):
    """What all schedules share. A subclass defines ``_value`` and ``bounds``.

    Args:
        unit: what the count means, see the module. None takes ``"updates"``, or the unit of the
            schedules inside.
    """

    # None stands for "not said" until __post_init__ fills it in.
    unit: Unit = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.unit is None:
            self.unit = "updates"
        if self.unit not in UNITS:
            raise ValueError(unknown_word("unit", self.unit, UNITS))

    def __call__(self, count: float) -> float:
        """The value after ``count`` updates, transitions or (0 to 1) progress."""
        return self._value(max(float(count), 0.0))

    @abstractmethod
    def _value(self, count: float) -> float:
        """The value at a count of at least 0."""

    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest value that the schedule can take."""

    def to_dict(self) -> dict[str, Any]:
        """The definition as plain data, which ``parse_schedule`` reads back to an equal object."""
        data: dict[str, Any] = {"schedule": SCHEDULES.name_of(type(self))}
        data.update({name: getattr(self, name) for name in self._own_fields()})
        data["unit"] = self.unit
        return data

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in self._own_fields()]
        shown.append(f"unit={self.unit!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def _own_fields(cls) -> list[str]:
        return [item.name for item in fields(cls) if item.name != "unit"]

    def _check_steps(self, steps: Any, label: str = "steps") -> float:
        """A length in this schedule's unit; the whole progress where that is the unit."""
        if self.unit == "progress":
            return check_number(label, 1.0 if steps is None else steps, low=0, high=1, above=True)
        if steps is None:
            raise ValueError(f"{label} is missing: the number of {self.unit} that it takes")
        return check_count(label, steps)


_SHORT_NAMES = {
    "const": "constant",
    "cos": "cosine",
    "exp": "exponential",
    "inv": "inverse",
    "lin": "linear",
}
_EXAMPLES = {
    "const": "const_1e-3",
    "cos": "cos_1e-3, cos_1e-3_1e-5 or cos_1e-3_1e-5_100000",
    "exp": "exp_1e-3_1e-8_0.996",
    "inv": "inv_1e-3_10",
    "lin": "lin_1e-3, lin_1e-3_1e-5 or lin_1e-3_1e-5_100000",
}


def parse_schedule(value: Any, name: str = "schedule", unit: Unit | None = None) -> Schedule:
    """Reads a schedule from any of the forms that ``schedules.py`` lists.

    Args:
        value: a number, a schedule, a string such as ``"exp_1e-3_1e-8_0.996"``, or a mapping.
        name: the field that the value belongs to, for errors.
        unit: unit for a form that does not say its own.

    Returns:
        The schedule; the same object if it was one already.

    Raises:
        TypeError: the value is of another type.
        ValueError: an unknown word or key, a missing one, or a number out of range.
    """
    try:
        if isinstance(value, Schedule):
            return value
        if isinstance(value, str):
            return _parse_string(value, unit)
        if isinstance(value, Mapping):
            return _parse_mapping(value, unit)
        constant: Any = SCHEDULES.resolve("constant")
        return cast("Schedule", constant(check_number("value", value), unit=unit))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def _parse_string(text: str, unit: Unit | None) -> Schedule:
    hint = numeric_string_hint(text)
    if hint:
        raise ValueError(f"got the string {text!r}{hint}")
    word, *rest = text.split("_")
    if word not in _SHORT_NAMES:
        raise ValueError(unknown_word("schedule", word, _SHORT_NAMES))
    try:
        numbers = [float(item) for item in rest]
    except ValueError:
        raise ValueError(f"{text!r} is not of the form {_EXAMPLES[word]}") from None
    if word in ("lin", "cos") and len(numbers) in (1, 2):
        # rl_zoo3's meaning: one number falls to 0 while the progress runs out.
        unit = "progress" if unit is None else unit
        numbers = numbers if len(numbers) == 2 else [*numbers, 0.0]
    elif len(numbers) != {"const": 1, "inv": 2}.get(word, 3):
        raise ValueError(f"{text!r} is not of the form {_EXAMPLES[word]}")
    make: Any = SCHEDULES.resolve(_SHORT_NAMES[word])
    return cast("Schedule", make(*numbers, unit=unit))


def _parse_mapping(data: Mapping[Any, Any], unit: Unit | None) -> Schedule:
    if "schedule" not in data:
        raise ValueError(f"the key 'schedule' is missing; choices: {', '.join(SCHEDULES)}")
    word = data["schedule"]
    kind: Any = SCHEDULES.resolve(_SHORT_NAMES.get(word, word) if isinstance(word, str) else word)
    allowed = {item.name: item for item in fields(kind)}
    arguments = {key: item for key, item in data.items() if key != "schedule"}
    for key in arguments:
        if key not in allowed:
            raise ValueError(unknown_word(f"key of the {word} schedule", key, allowed))
    missing = [
        key
        for key, item in allowed.items()
        if item.default is MISSING and item.default_factory is MISSING and key not in arguments
    ]
    if missing:
        raise ValueError(f"the {word} schedule needs the key {missing[0]!r}")
    arguments.setdefault("unit", unit)
    return cast("Schedule", kind(**arguments))
