"""The search as an object: a growing table of positions, and questions about them within limits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.util import module_from_spec
from itertools import chain
from numbers import Real
from typing import Any, Literal, NamedTuple

from resgym.game.exact import orders, reduced, search_actions
from resgym.solver import kernels as plain
from resgym.texts import shown

Objective = Literal["depth", "nodes", "leaves"]

Points = Sequence[tuple[int, ...]]

STEPS_PER_EXPANSION = 100
"""A search also stops after this many steps per allowed expansion, so that it returns in time even
if bounds rise for long without new positions."""

LARGEST = 2**28
"""The largest coordinate of a compiled table: with ten axes, products of two sums fit int64."""

_COLUMNS = ["start", "size", "hashed", "lower", "upper", "total", "shadows", "moves", "end"]

SEARCH_SHARE = 0.9
"""Share of the time limit for the search; the rest is for a tree as an upper bound."""

PLAIN_SECONDS, PLAIN_SECONDS_COLD = 0.4, 4.0
"""Seconds of plain search in a process after which compiled kernels are loaded or compiled.

Loading takes about half a second in every process; compiling takes ten seconds, once.
"""

PATIENCE_LOADING, PATIENCE_COMPILING = 1.0, 120.0
"""Seconds of the time limit that must remain to load and to compile them."""

_plain_seconds = 0.0
"""Seconds that finished plain searches have taken in this process."""


class Goal(NamedTuple):
    """The quantity that the host minimises, as a function of the values after the answers.

    A finished position has the value ``finished``. Any other has ``move`` plus the sum of the
    values after the answers, or plus the largest of them.
    """

    finished: int
    move: int
    by_sum: bool

    def total(self, costs: Iterable[Any]) -> Any:
        """Return the value by those after the answers."""
        return self.move + (sum if self.by_sum else max)(costs)


GOALS = {"depth": Goal(0, 1, False), "nodes": Goal(1, 1, True), "leaves": Goal(1, 0, True)}


class Progress(NamedTuple):
    """A report of a running search; see `Solution`."""

    lower_bound: int
    positions_searched: int
    seconds: float


def check_seconds(name: str, value: Any) -> None:
    """Raise ValueError unless a limit of time is None, or a number that is at least 0."""
    if value is not None and not (isinstance(value, Real) and float(value) >= 0):
        raise ValueError(f"{name} must be at least 0 seconds, got {shown(value)}")


@dataclass
class Limits:
    """The limits of all searches of one call; arguments are those of `resgym.solve`."""

    time_limit: float | None = None
    max_positions: int = 2**62
    progress: Callable[[Progress], None] | None = None
    started: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def seconds_left(self) -> float:
        """Return the seconds until the time limit; infinity without one."""
        return math.inf if self.time_limit is None else self.time_limit - self.seconds

    def report(self, lower_bound: int, positions_searched: int) -> None:
        """Report the progress of a search, if somebody wants to know."""
        if self.progress:
            self.progress(Progress(lower_bound, positions_searched, self.seconds))

    def reached(self, positions: int) -> str | None:
        """Return the name of the limit that a search has reached, if any."""
        if self.time_limit is not None and self.seconds >= SEARCH_SHARE * self.time_limit:
            return "time_limit"
        return "max_positions" if positions >= self.max_positions else None


class TooMuch(Exception):
    """The effort is spent, or the table is full."""


@cache
def compiled() -> Any:
    """Return the kernels compiled by numba; ImportError without numba."""
    from resgym.kernels.cpu.compilation import compiled as entry
    from resgym.kernels.cpu.compilation import inlined

    spec: Any = plain.__spec__
    # Not in sys.modules, where its plain life stands.
    module = module_from_spec(spec)
    # Without being told numba does not inline what takes a whole table, which costs half the time.
    vars(module)["jit"] = partial(inlined, forceinline=True)
    spec.loader.exec_module(module)
    for name in ("decide", "answers_to", "rehash"):
        setattr(module, name, entry(getattr(module, name)))
    return module


def is_ready() -> bool:
    """Return whether the compiled search has been used in this process, so that it is fast."""
    return compiled.cache_info().currsize > 0 and bool(compiled().decide.signatures)


@cache
def is_cached() -> bool:
    """Return whether the compiled search is on disk, so that loading it takes a moment."""
    from resgym.kernels.cpu.compilation import lies_on_disk

    return lies_on_disk(compiled().decide)


class Search:
    """A table of positions with the search on it.

    Positions are minimal points in any order. Those that differ by a shift, a factor or an order
    share a number. Finished positions have number 0, those too large for the kernels -1.

    Args:
        dimension: number of axes D.
        num_points: most points of a position.
        kernels: `resgym.solver.kernels`, or what `compiled` returns.
        room: capacity of the table in positions.

    Attributes:
        effort: [2], expansions and steps left.
    """

    def __init__(
        self,
        objective: Objective,
        dimension: int,
        num_points: int,
        kernels: Any = plain,
        *,
        room: float = math.inf,
    ) -> None:
        self.objective, self.kernels, self._room = objective, kernels, room
        self.goal = GOALS[objective]
        d, rows = dimension, max(2, num_points)
        sets = [sum(1 << j for j in axes) for axes in search_actions(d)]
        # Twice what one step needs, see `has_room`: doubling a table is always enough.
        new = 2 * d * (d + 2) + 2
        capacity = 1 << max(8, new.bit_length())
        sizes = dict.fromkeys(_COLUMNS, capacity) | {
            "counters": 5,
            "stack": 64,
            "limits": 64,
            "sets": len(sets),
            "words": 2 * new * rows * d,
            "answers": 2 * (len(sets) * (d + 3) + new),
            "here": rows * d,
            "there": rows * d,
            "columns": (d + 1) * rows,
            "pairs": (d + 1) * d,
            "colours": d,
            "order": d,
        }
        self.table = plain.Table(
            *self.goal,
            d,
            rows,
            math.inf if kernels is plain else LARGEST,
            slots=self._filled(-1, 2 * capacity),
            **{name: self._filled(0, size) for name, size in sizes.items()},
        )
        self.table.sets[:] = sets
        self.table.counters[plain.POSITIONS] = 1
        self.table.lower[0] = self.table.upper[0] = self.goal.finished
        self.effort, self._numbers = self._filled(0, 2), self._filled(0, d)

    def _filled(self, value: int, size: int) -> Any:
        """Return what the kernels work on: a list, or an array."""
        if self.kernels is plain:
            return [value] * size
        import numpy as np

        return np.full(size, value, np.int64)

    @property
    def size(self) -> int:
        """Number of positions in the table."""
        return int(self.table.counters[plain.POSITIONS])

    @property
    def expanded(self) -> int:
        """Number of positions whose moves have been generated."""
        return int(self.table.counters[plain.EXPANDED])

    def allow(self, expansions: int) -> None:
        """Set the effort that may be spent."""
        self.effort[0], self.effort[1] = expansions, expansions * STEPS_PER_EXPANSION

    def numbers(self, points: Points, axes: Sequence[int] = ()) -> list[int]:
        """Return the number of a position, or those of the positions after each axis of a set."""
        flat = [*chain.from_iterable(points)]
        if self.kernels is not plain and max(flat) >= 2**59:
            flat = [*chain.from_iterable(reduced(points))]
            if max(flat) >= 2**59:
                return [0 if len(points) == 1 else -1] * max(1, len(axes))
        self.table.here[: len(flat)] = flat
        question = len(points), sum(1 << j for j in axes), self._numbers
        while not self.kernels.answers_to(self.table, *question):
            self._grow()
        return [int(number) for number in self._numbers[: max(1, len(axes))]]

    def bounds(self, number: int) -> tuple[Any, Any]:
        """Return proved lower and upper bounds of the value."""
        if number < 0:
            return 0, self.kernels.NO_TREE
        lower, upper = self.table.lower[number], self.table.upper[number]
        return (lower, upper) if self.kernels is plain else (int(lower), int(upper))

    def known(self, points: Points) -> tuple[Any, Any]:
        """Return proved bounds of a position with at most `dimension` axes.

        Where axes have equal values the table may hold it several times, in different orders.
        """
        axes = [*filter(any, zip(*reduced(points), strict=True))]
        idle = [(0,) * len(points)] * (self.table.dimension - len(axes))
        found = (zip(*order, *idle, strict=True) for order in orders(axes))
        numbers = [self.numbers([*each])[0] for each in found]
        lower, upper = zip(*map(self.bounds, numbers), strict=True)
        return max(lower), min(upper)

    def cost(self, numbers: list[int]) -> tuple[Any, Any]:
        """Return proved bounds of the cost of a set, by the numbers of the answers."""
        lower, upper = zip(*map(self.bounds, numbers), strict=True)
        return self.goal.total(lower), self.goal.total(upper)

    def decide(self, number: int, limit: Any) -> None:
        """Search until it is known whether a value is at most a limit.

        Raises:
            TooMuch: the effort is spent, or the table is full.
            OverflowError: a coordinate is too large for the kernels.
        """
        status = plain.TOO_LARGE if number < 0 else plain.FULL
        while status == plain.FULL:
            status = self.kernels.decide(self.table, number, limit, self.effort)
            if status == plain.FULL:
                self._grow()
        if status == plain.STOPPED:
            raise TooMuch
        if status == plain.TOO_LARGE:
            raise OverflowError("a coordinate is too large for the compiled search")

    def value(self, number: int, highest: float = math.inf) -> Any:
        """Return the value of a position, or a bound above ``highest``; raises as `decide`."""
        while True:
            lower, upper = self.bounds(number)
            if lower >= upper or lower > highest:
                return lower
            self.decide(number, lower)

    def reaches(self, numbers: list[int], limit: Any) -> bool:
        """Return whether a set with these answers costs at most a limit; raises as `decide`."""
        while True:
            least, most = self.cost(numbers)
            if least > limit or most <= limit:
                return bool(most <= limit)
            bounds = {number: self.bounds(number) for number in numbers}
            # For sums each answer must be known exactly.
            below = 1 if self.goal.by_sum else limit
            unknown = [n for n, (low, high) in bounds.items() if high >= max(below, low + 1)]
            worst = max(unknown, key=lambda number: bounds[number][0])
            self.decide(worst, bounds[worst][0] if self.goal.by_sum else limit - 1)

    def _grow(self) -> None:
        """Double what is more than half full."""
        table, counters = self.table, self.table.counters
        if counters[plain.POSITIONS] >= self._room:
            raise TooMuch
        groups = {
            plain.POSITIONS: _COLUMNS,
            plain.WORDS: ["words"],
            plain.ANSWERS: ["answers"],
            plain.HEIGHT: ["stack", "limits"],
        }
        for counter, names in groups.items():
            length = len(getattr(table, names[0]))
            if 2 * counters[counter] >= length:
                for name in names:
                    column = self._filled(0, 2 * length)
                    column[:length] = getattr(table, name)
                    table = table._replace(**{name: column})
        if len(table.lower) > len(self.table.lower):
            table = table._replace(slots=self._filled(-1, 2 * len(table.lower)))
            self.kernels.rehash(table)
        self.table = table


@dataclass
class Proof:
    """What a search has proved about one position.

    Attributes:
        search: the table.
        lower: lower bound of the value; the value itself if it is settled.
        settled: whether the value is known.
        stopped: the limit that ended the search, or None.
    """

    search: Search
    lower: Any
    settled: bool
    stopped: str | None


def prove(
    points: Points,
    objective: Objective,
    limits: Limits,
    *,
    highest: float = math.inf,
    max_expansions: float = math.inf,
) -> Proof:
    """Search until the value of a position is proved or a limit is reached.

    Steps and results are the same with and without numba. The search also stops when the bound
    exceeds ``highest``, and after this many expansions. Other arguments are those of `Search`.
    """
    global _plain_seconds
    begin = partial(Search, objective, len(points[0]), len(points))
    begun, too_large = time.thread_time(), False
    search = begin(compiled() if is_ready() or _switches(_plain_seconds, limits) else plain)
    # Some hundredths of a second.
    moves = len(search.table.sets)
    while True:
        is_plain = search.kernels is plain
        # An expansion adds about four positions.
        room = (limits.max_positions - search.size) // 4
        stretch = max(1, 200 // moves, min((400 if is_plain else 20_000) // moves, room))
        number = search.numbers(points)[0]
        search.allow(int(min(stretch, max_expansions - search.expanded)))
        try:
            search.value(number, highest)
        except TooMuch:
            pass
        except OverflowError:
            search, too_large = begin(plain), True
            continue
        lower, upper = search.bounds(number)
        settled = lower >= upper
        stopped = "max_depth" if lower > highest else limits.reached(search.size)
        if search.expanded >= max_expansions:
            stopped = stopped or "max_expansions"
        if search.expanded:
            limits.report(lower, search.expanded)
        seconds = time.thread_time() - begun
        if settled or stopped:
            _plain_seconds += seconds if is_plain else 0.0
            return Proof(search, lower, settled, None if settled else stopped)
        if is_plain and not too_large and _switches(_plain_seconds + seconds, limits):
            search = begin(compiled())


def _switches(seconds: float, limits: Limits) -> bool:
    """Return whether compiled kernels pay off after this many seconds of plain search."""
    if seconds < PLAIN_SECONDS or limits.seconds_left < PATIENCE_LOADING:
        return False
    with suppress(ImportError):  # numba is missing or does not fit numpy
        return is_cached() or (
            seconds > PLAIN_SECONDS_COLD and limits.seconds_left > PATIENCE_COMPILING
        )
    return False
