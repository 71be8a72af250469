"""Runs a search within limits, and plays by what it has proved."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from resgym.game.plain import moved, search_actions
from resgym.solver.bounds import Objective, Points
from resgym.solver.search import NO_TREE, PythonSearch
from resgym.solver.solution import Limits, Progress

if TYPE_CHECKING:
    from resgym.solver.compiled_search import CompiledSearch

    Search = PythonSearch | CompiledSearch


SWITCH_COLD = 200
"""Expansions in three axes (fewer in more, by the number of moves) after which the compiled search
starts over, if it is not loaded yet: loading it takes half a second or so in every new process, and
compiling it a minute the first time."""

PATIENCE_LOADING, PATIENCE_COMPILING = 2.0, 120.0
"""Seconds that must be left to load and to compile it."""


@dataclass
class Proof:
    """What a search has proved about one position.

    Attributes:
        search: the table.
        left: moves allowed, -1 for any number.
        lower: bound of the value; the value if it is settled.
        settled: whether the value is known.
        stopped: the limit that ended the search, or None.
    """

    search: Search
    left: int
    lower: int
    settled: bool
    stopped: str | None


def prove(
    points: Points,
    objective: Objective,
    limits: Limits,
    *,
    left: int = -1,
    cut: bool = False,
    highest: int = NO_TREE,
    max_expansions: int | None = None,
) -> Proof:
    """Searches until the value of a position is proved or a limit is reached.

    The steps and results do not depend on whether numba is there. It also stops when the bound is
    larger than ``highest``, and after so many expansions; the rest is as of `PythonSearch`.
    """
    search: Search = PythonSearch(objective, cut)
    dimension = len(points[0])
    moves = (dimension << (dimension - 1)) - dimension
    python, large = True, False
    while True:
        if python and not large and _switches((search.expanded + 1) * moves / 9, limits):
            python = False
            search = _compiled(objective, cut, dimension, len(points)) or search
        # Some hundredths of a second.
        stretch = max(1, (200 if isinstance(search, PythonSearch) else 20_000) // moves)
        if max_expansions is not None:
            stretch = min(stretch, max_expansions - search.expanded)
        try:
            lower, upper = search.bounds([points], left)[0]
            stopped = "max_depth" if lower > highest else limits.reached(search.size)
            if max_expansions is not None and search.expanded >= max_expansions:
                stopped = stopped or "max_expansions"
            # What is cut may cost less than a projection of it, whose bound holds all the same.
            settled = lower >= upper
            if settled or stopped:
                return Proof(search, left, lower, settled, None if settled else stopped)
            search.settle(points, left, highest, stretch)
            lower, upper = search.bounds([points], left)[0]
        except OverflowError:
            search, large = PythonSearch(objective, cut), True
            continue
        limits.progress(Progress(lower, search.expanded, limits.seconds))


def _switches(expanded: float, limits: Limits) -> bool:
    module = sys.modules.get("resgym.solver.compiled_search")
    if module is not None and module.is_ready():
        return True
    if expanded < SWITCH_COLD or limits.seconds_left < PATIENCE_LOADING:
        return False
    try:
        from resgym.solver.compiled_search import is_cached
    except ImportError:
        return False
    return limits.seconds_left > PATIENCE_COMPILING or is_cached()


def _compiled(objective: Objective, cut: bool, dimension: int, num_points: int) -> Search | None:
    try:
        from resgym.solver.compiled_search import CompiledSearch
    except ImportError:  # no numba, or one that does not fit the numpy that is there
        return None
    return CompiledSearch(objective, dimension, num_points, cut=cut)


def best_sets(search: Search, positions: Sequence[Points], left: int = -1) -> list[tuple[int, ...]]:
    """A set for each position after which the proved bound of the value is reached.

    Of several it takes one with the least sum of bounds over the answers, then the one that comes
    first among the actions. From a settled position of the search on, every position that these
    sets lead to is resolved as well as the value of the first one asks for.
    """
    sets = search_actions(len(positions[0][0]))
    after = left - 1 if left > 0 else -1
    answers = [moved(points, axes, axis) for points in positions for axes in sets for axis in axes]
    bounds = iter(search.bounds(answers, after))
    total = sum if search.goal.by_sum else max
    chosen = []
    for _ in positions:
        ranks = {}
        for axes in sets:
            costs = [next(bounds)[1] for _ in axes]
            ranks[axes] = total(costs), sum(costs)
        chosen.append(min(ranks, key=ranks.__getitem__))
    return chosen
