"""Schedules: a learning rate or an exploration rate as a function of how far training has come.

A schedule is a small picklable object, called with a count t and giving a float. It holds no
clock of its own: t is read from the algorithm (``schedule_binding.py``), so that the value goes on
where it stopped after a resume and after a second ``learn``. What t counts is the schedule's
``unit``: gradient ``updates`` (the default), environment ``transitions``, or ``progress`` from 0 at
the start of training to 1 at its end. Past its end a schedule keeps its last value.

``parse_schedule`` reads the forms that a configuration file may use:

    1.0e-4                                   a constant
    lin_1e-3                                 linear to 0 over the progress, as in rl_zoo3
    lin_1e-3_1e-5   cos_1e-3_1e-5            between two values over the progress
    lin_1e-3_1e-5_100000   cos_..._100000    the same over 100000 updates
    exp_1e-3_1e-8_0.996   inv_1e-3_10   const_1e-3
    {schedule: exponential, init: 1.0e-3, final: 1.0e-8, rate: 0.996, unit: transitions}
    {schedule: warmup, steps: 1000, then: exp_1e-3_1e-8_0.996}
    {schedule: chained, pieces: [{steps: 1000, then: 1.0e-3}, {steps: null, then: 1.0e-4}]}
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sb3_ext.config.checks import check_number
from sb3_ext.schedules.base import SCHEDULES, UNITS, Schedule, Unit, parse_schedule

__all__ = [
    "SCHEDULES",
    "UNITS",
    "Chained",
    "Constant",
    "Cosine",
    "Exponential",
    "Inverse",
    "Linear",
    "Schedule",
    "Unit",
    "Warmup",
    "parse_schedule",
]


@SCHEDULES.register("constant")
@dataclass(repr=False)
class Constant(Schedule):
    """v(t) = value."""

    value: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.value = check_number("value", self.value)

    def _value(self, count: float) -> float:
        return self.value

    def bounds(self) -> tuple[float, float]:  # noqa: D102
        return self.value, self.value


@SCHEDULES.register("exponential")
@dataclass(repr=False)
class Exponential(Schedule):
    """v(t) = init * rate^t + final * (1 - rate^t): from ``init`` towards ``final``.

    Args:
        init: value at t = 0.
        final: value that it tends to.
        rate: the part of the distance to ``final`` that is left after one count, in (0, 1].
    """

    init: float
    final: float
    rate: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.init = check_number("init", self.init)
        self.final = check_number("final", self.final)
        self.rate = check_number("rate", self.rate, low=0, high=1, above=True)

    def _value(self, count: float) -> float:
        left = math.pow(self.rate, count)
        return self.init * left + self.final * (1.0 - left)

    def bounds(self) -> tuple[float, float]:  # noqa: D102
        return min(self.init, self.final), max(self.init, self.final)


@SCHEDULES.register("inverse")
@dataclass(repr=False)
class Inverse(Schedule):
    """v(t) = rate / (t + rate / init): ``init`` at first, half of it at t = rate / init, then to 0.

    Args:
        init: value at t = 0, above 0.
        rate: the value falls like rate / t, above 0.
    """

    init: float
    rate: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.init = check_number("init", self.init, low=0, above=True)
        self.rate = check_number("rate", self.rate, low=0, above=True)

    def _value(self, count: float) -> float:
        # Divided by rate: at t = 0 this is init exactly, and rate / init cannot overflow.
        return self.init / (count * (self.init / self.rate) + 1.0)

    def bounds(self) -> tuple[float, float]:  # noqa: D102
        return 0.0, self.init


@dataclass(repr=False)
class _Ramp(Schedule):
    """From one value to another in a given time, then constant."""

    init: float
    final: float
    steps: float = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.init = check_number("init", self.init)
        self.final = check_number("final", self.final)
        self.steps = self._check_steps(self.steps)

    def _value(self, count: float) -> float:
        if count >= self.steps:
            return self.final
        part = self._part_done(count / self.steps)
        return self.init * (1.0 - part) + self.final * part

    @abstractmethod
    def _part_done(self, time: float) -> float:
        """The part of the way, 0 to 1, done after the part ``time`` of the steps."""

    def bounds(self) -> tuple[float, float]:
        return min(self.init, self.final), max(self.init, self.final)


@SCHEDULES.register("linear")
@dataclass(repr=False)
class Linear(_Ramp):
    """A straight line from ``init`` to ``final``.

    Args:
        init: value at t = 0.
        final: value at t = ``steps`` and ever after.
        steps: how long it takes, in the unit; with progress a part of it, by default all of it.
    """

    def _part_done(self, time: float) -> float:
        return time


@SCHEDULES.register("cosine")
@dataclass(repr=False)
class Cosine(_Ramp):
    """Half a period of a cosine from ``init`` to ``final``, flat at both ends.

    Args:
        init: value at t = 0.
        final: value at t = ``steps`` and ever after.
        steps: how long it takes, in the unit; with progress a part of it, by default all of it.
    """

    def _part_done(self, time: float) -> float:
        return 0.5 * (1.0 - math.cos(math.pi * time))


@SCHEDULES.register("warmup")
@dataclass(repr=False)
class Warmup(Schedule):
    """A straight line to the first value of another schedule, which then begins.

    Args:
        steps: how long the line takes, in the unit.
        then: the schedule after it, in any form that ``parse_schedule`` reads. It starts to count
            when the line ends. Its unit is that of the whole.
        init: value at t = 0.
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

    def to_dict(self) -> dict[str, Any]:  # noqa: D102
        return {**super().to_dict(), "then": self.then.to_dict()}


@SCHEDULES.register("chained")
@dataclass(repr=False)
class Chained(Schedule):
    """One schedule after another, each counting from its own start.

    Args:
        pieces: pairs (steps, schedule), or mappings with the keys ``steps`` and ``then``. A count
            on the border belongs to the later piece. At the end of the last piece its value stays;
            with None for its steps it has no end. All pieces have the unit of the whole.
    """

    pieces: list[tuple[float | None, Schedule]]

    def __post_init__(self) -> None:
        pairs = _read_pieces(self.pieces, self.unit)
        self.unit = _common_unit(self.unit, [then for _, then in pairs])
        super().__post_init__()
        last = len(pairs) - 1
        self.pieces = [
            (
                None
                if steps is None and index == last
                else self._check_steps(steps, f"pieces[{index}].steps"),
                then,
            )
            for index, (steps, then) in enumerate(pairs)
        ]

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


def _read_pieces(pieces: Any, unit: Unit) -> list[tuple[Any, Schedule]]:
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
