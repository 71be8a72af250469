"""Run a search within limits, and play by what it has proved."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import thread_time
from typing import Any

from resgym.game.exact import moved, search_actions
from resgym.solver import kernels as plain
from resgym.solver.search import (
    Goal,
    Objective,
    Points,
    Search,
    TooMuch,
    compiled,
    is_cached,
    is_ready,
)
from resgym.solver.solution import Limits

PLAIN_SECONDS, PLAIN_SECONDS_COLD = 0.4, 4.0
"""Seconds of plain search in a process after which compiled kernels are loaded or compiled.

Loading takes about half a second in every process; compiling takes ten seconds, once.
"""

PATIENCE_LOADING, PATIENCE_COMPILING = 2.0, 120.0
"""Seconds of the time limit that must remain to load and to compile them."""

_plain_seconds = 0.0
"""Seconds that finished plain searches have taken in this process."""


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

    def begin(kernels: Any) -> Search:
        return Search(objective, len(points[0]), len(points), kernels)

    global _plain_seconds
    begun, too_large = thread_time(), False
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
        seconds = thread_time() - begun
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
        if is_cached():
            return True
        return seconds > PLAIN_SECONDS_COLD and limits.seconds_left > PATIENCE_COMPILING
    return False


def best_set(
    points: Points, goal: Goal, bounds: Callable[[Points], tuple[Any, Any]]
) -> tuple[int, ...]:
    """Return a set after which the proved bound of a position's value is reached.

    Of several sets it takes one with the least sum of bounds over the answers, then the first
    action. From a settled position on, every position that these sets lead to is resolved within
    the value of the first one.

    Args:
        points: a pruned position.
        goal: what the host minimises.
        bounds: returns lower and upper bounds of a position, such as `Search.known`.
    """

    def rank(axes: tuple[int, ...]) -> tuple[Any, Any]:
        above = [bounds(moved(points, axes, axis))[1] for axis in axes]
        return goal.total(above), sum(above)

    return min(search_actions(len(points[0])), key=rank)
