"""Schedules: a learning rate or an exploration rate as a function of how far training has come.

A schedule is a small picklable object, called with a count t and giving a float. It holds no
clock of its own: t is read from the algorithm (``binding.py``), so that the value goes on
after a resume and after a second ``learn``. What t counts is the schedule's
``unit``: gradient ``updates`` (the default), environment ``transitions``, or ``progress`` from 0 at
the start of training to 1 at its end. Past its end a schedule keeps its last value.

``parse_schedule`` reads the forms of configuration files that docs/configuration.md lists.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, cast

from sb3_ext.config.arguments import from_data
from sb3_ext.config.checks import check_count, check_number, numeric_string_hint
from sb3_ext.config.registry import Registry, unknown_word

Unit = Literal["updates", "transitions", "progress"]
UNITS: tuple[Unit, ...] = ("updates", "transitions", "progress")

SCHEDULES: Registry[type[Schedule]] = Registry("schedule")


def _number(low: float = -math.inf, *, above: bool = False, high: float = math.inf) -> Any:
    """A field whose number is checked as by `check_number`."""
    return field(metadata={"low": low, "above": above, "high": high})


@dataclass(kw_only=True)
class Schedule(ABC):
    """What all schedules share. A subclass defines ``_value`` and ``bounds``.

    ``unit`` None takes ``"updates"``, or the unit of the schedules inside.
    """

    unit: Unit = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.unit is None:
            self.unit = "updates"
        if self.unit not in UNITS:
            raise ValueError(unknown_word("unit", self.unit, UNITS))
        for each in fields(self):
            if each.metadata:
                number = check_number(each.name, getattr(self, each.name), **each.metadata)
                setattr(self, each.name, number)

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
        for each in fields(self):
            value = getattr(self, each.name)
            data[each.name] = value.to_dict() if isinstance(value, Schedule) else value
        return data

    def _check_steps(self, steps: Any, label: str = "steps") -> float:
        """A length in this schedule's unit; the whole progress where that is the unit."""
        if self.unit == "progress":
            return check_number(label, 1.0 if steps is None else steps, low=0, high=1, above=True)
        if steps is None:
            raise ValueError(f"{label} is missing: the number of {self.unit} that it takes")
        return check_count(label, steps)


@SCHEDULES.register("constant")
@dataclass
class Constant(Schedule):
    """v(t) = value."""

    value: float = _number()

    def _value(self, count: float) -> float:
        return self.value

    def bounds(self) -> tuple[float, float]:  # noqa: D102
        return self.value, self.value


@dataclass
class _Between(Schedule):
    """From one value to another."""

    init: float = _number()
    final: float = _number()

    def bounds(self) -> tuple[float, float]:
        return min(self.init, self.final), max(self.init, self.final)


@SCHEDULES.register("exponential")
@dataclass
class Exponential(_Between):
    """v(t) = init * rate^t + final * (1 - rate^t), ``rate`` in (0, 1]."""

    rate: float = _number(0, above=True, high=1)

    def _value(self, count: float) -> float:
        left = math.pow(self.rate, count)
        return self.init * left + self.final * (1.0 - left)


@SCHEDULES.register("inverse")
@dataclass
class Inverse(Schedule):
    """v(t) = rate / (t + rate / init), both above 0: half of ``init`` at t = rate / init."""

    init: float = _number(0, above=True)
    rate: float = _number(0, above=True)

    def _value(self, count: float) -> float:
        # Divided by rate: at t = 0 this is init exactly, and rate / init cannot overflow.
        return self.init / (count * (self.init / self.rate) + 1.0)

    def bounds(self) -> tuple[float, float]:  # noqa: D102
        return 0.0, self.init


@dataclass
class _Ramp(_Between):
    """From ``init`` at t = 0 to ``final`` at t = ``steps`` and ever after.

    ``steps`` are in the unit; with progress a part of it, by default all of it.
    """

    steps: float = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.steps = self._check_steps(self.steps)

    def _value(self, count: float) -> float:
        if count >= self.steps:
            return self.final
        part = self._part_done(count / self.steps)
        return self.init * (1.0 - part) + self.final * part

    @abstractmethod
    def _part_done(self, time: float) -> float:
        """The part of the way, 0 to 1, done after the part ``time`` of the steps."""


@SCHEDULES.register("linear")
@dataclass
class Linear(_Ramp):
    """A straight line from ``init`` to ``final`` in ``steps``, or over the whole progress."""

    def _part_done(self, time: float) -> float:
        return time


@SCHEDULES.register("cosine")
@dataclass
class Cosine(_Ramp):
    """Half a period of a cosine, flat at both ends; arguments as for `Linear`."""

    def _part_done(self, time: float) -> float:
        return 0.5 * (1.0 - math.cos(math.pi * time))


@SCHEDULES.register("warmup")
@dataclass
class Warmup(Schedule):
    """A straight line of ``steps`` from ``init`` to another schedule, which then begins to count.

    ``then`` has any form that ``parse_schedule`` reads; its unit is that of the whole.
    """

    steps: float
    then: Schedule
    init: float = 0.0

    def __post_init__(self) -> None:
        self.then = parse_schedule(self.then, "then", unit=self.unit)
        self.unit = _common_unit(self.unit, [self.then])
        super().__post_init__()
        self.init = check_number("init", self.init)
        self.steps = self._check_steps(self.steps)

    def _value(self, count: float) -> float:
        if count >= self.steps:
            return self.then(count - self.steps)
        part = count / self.steps
        return self.init * (1.0 - part) + self.then(0) * part

    def bounds(self) -> tuple[float, float]:  # noqa: D102
        low, high = self.then.bounds()
        return min(self.init, low), max(self.init, high)


@SCHEDULES.register("chained")
@dataclass
class Chained(Schedule):
    """One schedule after another, each counting from its own start, all in the unit of the whole.

    Pieces are pairs (steps, schedule), or mappings with the keys ``steps`` and ``then``. A count on
    the border belongs to the later piece. With None for its steps the last one has no end.
    """

    pieces: list[tuple[float | None, Schedule]]

    def __post_init__(self) -> None:
        pairs = _read_pieces(self.pieces, self.unit)
        self.unit = _common_unit(self.unit, [then for _, then in pairs])
        super().__post_init__()
        last = len(pairs) - 1
        self.pieces = []
        for index, (steps, then) in enumerate(pairs):
            if steps is not None or index < last:
                steps = self._check_steps(steps, f"pieces[{index}].steps")
            self.pieces.append((steps, then))

    def _value(self, count: float) -> float:
        for steps, then in self.pieces[:-1]:
            assert steps is not None
            if count < steps:
                return then(count)
            count -= steps
        steps, then = self.pieces[-1]
        return then(count if steps is None else min(count, steps))

    def bounds(self) -> tuple[float, float]:  # noqa: D102
        lows, highs = zip(*(then.bounds() for _, then in self.pieces), strict=True)
        return min(lows), max(highs)

    def to_dict(self) -> dict[str, Any]:  # noqa: D102
        pieces = [{"steps": steps, "then": then.to_dict()} for steps, then in self.pieces]
        return {**super().to_dict(), "pieces": pieces}


def _read_pieces(pieces: Any, unit: Unit | None) -> list[tuple[Any, Schedule]]:
    if isinstance(pieces, (str, Mapping)) or not isinstance(pieces, Sequence) or not pieces:
        raise ValueError(f"pieces must be a list of (steps, schedule) pairs, got {pieces!r}")
    pairs = []
    for index, piece in enumerate(pieces):
        if isinstance(piece, Mapping) and set(piece) == {"steps", "then"}:
            steps, then = piece["steps"], piece["then"]
        elif isinstance(piece, Sequence) and not isinstance(piece, str) and len(piece) == 2:
            steps, then = piece
        else:
            raise ValueError(
                f"pieces[{index}] must be a pair (steps, schedule) or a mapping with the keys "
                f"steps and then, got {piece!r}"
            )
        pairs.append((steps, parse_schedule(then, f"pieces[{index}].then", unit=unit)))
    return pairs


def _common_unit(unit: Unit | None, inside: Sequence[Schedule]) -> Unit:
    units = {schedule.unit for schedule in inside} | ({unit} if unit is not None else set())
    if len(units) > 1:
        raise ValueError(f"all parts of a schedule need one unit, got {', '.join(sorted(units))}")
    return units.pop()


_SHORT_FORMS = {
    "const": ("constant", "const_1e-3"),
    "cos": ("cosine", "cos_1e-3, cos_1e-3_1e-5 or cos_1e-3_1e-5_100000"),
    "exp": ("exponential", "exp_1e-3_1e-8_0.996"),
    "inv": ("inverse", "inv_1e-3_10"),
    "lin": ("linear", "lin_1e-3, lin_1e-3_1e-5 or lin_1e-3_1e-5_100000"),
}


def parse_schedule(value: Any, name: str = "schedule", unit: Unit | None = None) -> Schedule:
    """Reads a schedule from any of the forms that docs/configuration.md lists.

    Args:
        value: a number, a string, a mapping, or a schedule, which is returned as it is.
        name: the field that the value belongs to, for errors.
        unit: unit for a form that does not say its own.

    Raises:
        TypeError, ValueError: another type, an unknown or missing word, a number out of range.
    """
    try:
        if isinstance(value, Schedule):
            return value
        if isinstance(value, str):
            return _parse_string(value, unit)
        if isinstance(value, Mapping):
            return _parse_mapping(value, unit)
        return Constant(check_number("value", value), unit=unit)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def _parse_string(text: str, unit: Unit | None) -> Schedule:
    hint = numeric_string_hint(text)
    if hint:
        raise ValueError(f"got the string {text!r}{hint}")
    word, *rest = text.split("_")
    if word not in _SHORT_FORMS:
        raise ValueError(unknown_word("schedule", word, _SHORT_FORMS))
    name, examples = _SHORT_FORMS[word]
    try:
        numbers = [float(item) for item in rest]
    except ValueError:
        raise ValueError(f"{text!r} is not of the form {examples}") from None
    if word in ("lin", "cos") and len(numbers) in (1, 2):
        # rl_zoo3's meaning: one number falls to 0 while the progress runs out.
        unit = "progress" if unit is None else unit
        numbers = numbers if len(numbers) == 2 else [*numbers, 0.0]
    elif len(numbers) != {"const": 1, "inv": 2}.get(word, 3):
        raise ValueError(f"{text!r} is not of the form {examples}")
    make: Any = SCHEDULES.resolve(name)
    return cast("Schedule", make(*numbers, unit=unit))


def _parse_mapping(data: Mapping[Any, Any], unit: Unit | None) -> Schedule:
    word = data.get("schedule")
    if isinstance(word, str) and word in _SHORT_FORMS:
        data = {**data, "schedule": _SHORT_FORMS[word][0]}
    return from_data(SCHEDULES, "schedule", {"unit": unit, **data})
