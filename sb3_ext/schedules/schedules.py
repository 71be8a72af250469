"""Schedules: a learning rate or an exploration rate as a function of how far training has come.

A schedule is a small picklable function of a count t. It has no clock: the caller passes the count
of the schedule's ``unit``: gradient ``updates`` (the default), environment ``transitions``, or
``progress`` from 0 at the start of training to 1 at its end. So a value continues after a resume
and in a second ``learn``. Past its end a schedule keeps its last value.

`parse_schedule` reads the forms of configuration files that docs/configuration.md lists.

`DDQN` takes schedules as arguments, and both its rates follow the model's counters. Algorithms of
stable-baselines3 accept only functions of their progress (`of_progress`), which jumps back when
``learn`` is called again.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator
from torch.optim import Optimizer

from sb3_ext.adapter.seam import num_updates
from sb3_ext.config.checks import (
    Registry,
    check_count,
    check_number,
    errors_of,
    from_data,
    numeric_string_hint,
    shown,
    unknown_word,
)
from sb3_ext.config.sections import checked

Unit = Literal["updates", "transitions", "progress"]
UNITS = get_args(Unit)


def _number(low: float = -math.inf, *, above: bool = False, high: float = math.inf) -> Any:
    """A field whose number is checked as by `check_number`."""
    return field(metadata={"low": low, "above": above, "high": high})


@dataclass(kw_only=True)
class Schedule(ABC):
    """The base of schedules. A subclass defines ``_value`` and ``bounds``.

    With ``unit`` None, the unit is that of the inner schedules, or ``"updates"``.
    """

    unit: Unit = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        units = {each.unit for each in (self, *self._inside()) if each.unit is not None}
        if len(units) > 1:
            raise ValueError(
                f"all parts of a schedule need one unit, got {', '.join(sorted(units))}"
            )
        self.unit = units.pop() if units else "updates"
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

    def _inside(self) -> list[Schedule]:
        return []

    def _check_steps(self, steps: Any, name: str = "steps") -> float:
        """A length in the unit; the whole progress where that is the unit."""
        if self.unit == "progress":
            return check_number(name, 1.0 if steps is None else steps, low=0, high=1, above=True)
        if steps is None:
            raise ValueError(f"{name} is missing: the number of {self.unit} that it takes")
        return check_count(name, steps)


SCHEDULES: Registry[type[Schedule]] = Registry("schedule", Schedule)


class _OneWay(Schedule):
    """It only rises or only falls, from its first value to that after any number of steps."""

    def bounds(self) -> tuple[float, float]:
        low, high = sorted((self(0.0), self(math.inf)))
        return low, high


@SCHEDULES.register("constant")
@dataclass
class Constant(_OneWay):
    """v(t) = value."""

    value: float = _number()

    def _value(self, count: float) -> float:
        return self.value


@dataclass
class _Between(_OneWay):
    """From one value to another."""

    init: float = _number()
    final: float = _number()


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
class Inverse(_OneWay):
    """v(t) = rate / (t + rate / init), both above 0: half of ``init`` at t = rate / init."""

    init: float = _number(0, above=True)
    rate: float = _number(0, above=True)

    def _value(self, count: float) -> float:
        # Divided by rate: at t = 0 this is init exactly, and rate / init cannot overflow.
        return self.init / (count * (self.init / self.rate) + 1.0)


@SCHEDULES.register("linear")
@dataclass
class Linear(_Between):
    """A straight line from ``init`` at t = 0 to ``final`` at t = ``steps`` and ever after.

    ``steps`` are in the unit; with progress a part of it, by default all of it.
    """

    steps: float = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.steps = self._check_steps(self.steps)

    def _value(self, count: float) -> float:
        part = self._part(min(count / self.steps, 1.0))
        return self.init * (1.0 - part) + self.final * part

    def _part(self, time: float) -> float:
        return time


@SCHEDULES.register("cosine")
@dataclass
class Cosine(Linear):
    """Half a period of a cosine, flat at both ends; arguments as for `Linear`."""

    def _part(self, time: float) -> float:
        return 0.5 * (1.0 - math.cos(math.pi * time))


@SCHEDULES.register("chained")
@dataclass
class Chained(Schedule):
    """One schedule after another, each counting from its own start, all in the unit of the whole.

    Pieces are pairs (steps, schedule). A count on the border belongs to the later piece. The last
    piece has no end if its steps are None.
    """

    pieces: list[tuple[float | None, Schedule]]

    def __post_init__(self) -> None:
        if not isinstance(self.pieces, (list, tuple)) or not self.pieces:
            raise ValueError(
                f"pieces must be a list of (steps, schedule), got {shown(self.pieces)}"
            )
        pairs = []
        for index, pair in enumerate(self.pieces):
            name = f"pieces[{index}]"
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise ValueError(f"{name} must be a pair (steps, schedule), got {shown(pair)}")
            pairs.append((pair[0], parse_schedule(pair[1], f"{name}.then", unit=self.unit)))
        self.pieces = pairs
        super().__post_init__()
        for index, (steps, then) in enumerate(pairs):
            if steps is not None or index + 1 < len(pairs):
                pairs[index] = (self._check_steps(steps, f"pieces[{index}].steps"), then)

    def _inside(self) -> list[Schedule]:
        return [then for _, then in self.pieces]

    def _value(self, count: float) -> float:
        for steps, then in self.pieces[:-1]:
            assert steps is not None
            if count < steps:
                return then(count)
            count -= steps
        steps, then = self.pieces[-1]
        return then(count if steps is None else min(count, steps))

    def bounds(self) -> tuple[float, float]:  # noqa: D102
        lows, highs = zip(*(then.bounds() for then in self._inside()), strict=True)
        return min(lows), max(highs)


_SHORT = {
    "const": Constant,
    "cos": Cosine,
    "exp": Exponential,
    "inv": Inverse,
    "lin": Linear,
}


def parse_schedule(
    value: Any,
    name: str = "schedule",
    unit: Unit | None = None,
    highest: float | None = None,
) -> Schedule:
    """Reads a schedule from any of the forms that docs/configuration.md lists.

    Args:
        value: a number, a string, a mapping, or a schedule, which is returned as it is.
        name: the field that the value belongs to, for errors.
        unit: unit of forms without one.
        highest: the largest value allowed, with 0 as the least; None: any.

    Raises:
        ValueError: the type or a word is unknown, or a number is out of range.
    """
    with errors_of(name, ValueError):
        if isinstance(value, Schedule):
            schedule = value
        elif isinstance(value, str):
            schedule = _parse_string(value, unit)
        elif isinstance(value, Mapping):
            schedule = from_data(SCHEDULES, "schedule", {"unit": unit, **value})
        else:
            schedule = Constant(value, unit=unit)  # type: ignore[arg-type]
    low, high = schedule.bounds()
    if highest is not None and (low < 0 or high > highest):
        raise ValueError(
            f"{name}: values must lie in 0..{highest:g}, {schedule!r} takes {low:g} to {high:g}"
        )
    return schedule


def _parse_string(text: str, unit: Unit | None) -> Schedule:
    if hint := numeric_string_hint(text):
        raise ValueError(f"got the string {text!r}{hint}")
    word, *rest = text.split("_")
    if word not in _SHORT:
        raise ValueError(unknown_word("schedule", word, _SHORT))
    kind = _SHORT[word]
    try:
        numbers = [float(item) for item in rest]
        if issubclass(kind, Linear) and len(numbers) in (1, 2):
            # rl_zoo3's meaning: one number falls to 0 while the progress runs out.
            unit, numbers = unit or "progress", [*numbers, 0.0][:2]
        return kind(*numbers, unit=unit)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{text!r}: {error}") from None


@dataclass
class Following:
    """A schedule of a model's counters in the form that SB3 calls.

    Transitions are ``num_transitions`` of the model if it has that, else its ``num_timesteps``,
    which ``learn`` sets back.
    """

    schedule: Schedule
    model: Any

    def __call__(self, progress_remaining: float) -> float:
        """The value now."""
        model = self.model
        counts = {
            "updates": num_updates(model),
            "transitions": getattr(model, "num_transitions", model.num_timesteps),
            "progress": 1.0 - progress_remaining,
        }
        return self.schedule(counts[self.schedule.unit])


def of_progress(schedule: Schedule) -> Callable[[float], float]:
    """A schedule of the progress as an on-policy algorithm calls it."""
    return lambda remaining: schedule(1.0 - remaining)


def set_learning_rate(optimizer: Optimizer, rate: float) -> None:
    """Give an optimiser a rate; a group with a `rate_factor` gets the rate times that."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("rate_factor", 1.0)


def schedule_field(
    highest: float = math.inf,
    units: tuple[Unit, ...] = ("updates", "transitions"),
    unit: Unit | None = "updates",
) -> BeforeValidator:
    """A validator for schedules of `units` in [0, highest]; `unit` where a form says none."""

    def check(value: Any) -> Any:
        schedule = parse_schedule(value, "", unit, highest)
        if schedule.unit not in units:
            why = "" if "progress" in units else ": there is no end that progress could refer to"
            raise ValueError(
                f" must be a schedule of {' or '.join(units)}, got unit {schedule.unit!r}{why}"
            )
        return value  # plain data can be written out as it was read

    return checked(check)


LearningRate = Annotated[Any, schedule_field()]
ExplorationRate = Annotated[Any, schedule_field(highest=1.0)]
