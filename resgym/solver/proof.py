"""Runs a search within limits, and plays by what it has proved."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from resgym.game.plain import (
    Position,
    canonical,
    canonical_order,
    moved,
    search_actions,
)
from resgym.solver.search_table import NO_TREE, PythonSearch, Search

__all__ = ["Limits", "OptimalPlay", "Progress", "Proof", "prove"]

SWITCH_READY = 1500
SWITCH_COLD = 8000
"""Expansions in three axes (fewer in more, by the number of moves) after which the compiled search
starts over. Loading it takes a few seconds in every new process, and compiling it ten more the
first time: a search of a second must not wait for that, nor one that has less than `PATIENCE` left.
"""

PATIENCE = 15.0
"""Seconds."""


class Progress(NamedTuple):
    """What a running search reports.

    Attributes:
        lower_bound: proved so far.
        positions_searched: positions whose moves have been generated.
        seconds: since the start.
    """

    lower_bound: int
    positions_searched: int
    seconds: float


@dataclass
class Limits:
    """When to stop, shared by all searches of one call.

    Args:
        time_limit: seconds, or None.
        max_positions: entries of the table.
        progress: called after every stretch of the search.
    """

    time_limit: float | None
    max_positions: int
    progress: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.started

    def reached(self, positions: int) -> str | None:
        """The name of the limit that has been reached, if any."""
        if self.time_limit is not None and self.seconds >= self.time_limit:
            return "time_limit"
        return "max_positions" if positions >= self.max_positions else None


@dataclass
class Proof:
    """What a search has proved about one position.

    Attributes:
        search: the table.
        root: the canonical position.
        remaining: moves allowed, -1 for any number.
        lower: proved lower bound.
        settled: whether the bound is the value.
        stopped: the limit that ended the search, or None.
    """

    search: Search
    root: Position
    remaining: int
    lower: int
    settled: bool
    stopped: str | None


def prove(
    root: Position,
    objective: str,
    limits: Limits,
    *,
    remaining: int = -1,
    cut_cost: int = NO_TREE,
    give_up_above: int = NO_TREE,
    max_expansions: int | None = None,
) -> Proof:
    """Searches until the value of a canonical position is proved or a limit is reached.

    The steps and results do not depend on whether numba is there.

    Args:
        root: the position.
        objective: ``depth`` or ``nodes``.
        limits: when to stop.
        remaining: moves allowed on a branch, -1 for any number.
        cut_cost: cost of an unfinished position with no move remaining.
        give_up_above: stop when the bound is larger.
        max_expansions: stop after so many expansions.
    """
    search: Search = PythonSearch(objective, cut_cost)
    compiled_allowed = True
    lower = 0
    dimension = len(root[0])
    stretch = max(1, 2000 // _moves(dimension))
    while True:
        number = search.add(root, remaining)
        allowed = stretch
        if max_expansions is not None:
            allowed = min(stretch, max_expansions - search.expanded)
        try:
            settled = search.advance(number, allowed)
        except OverflowError:
            search, compiled_allowed = PythonSearch(objective, cut_cost), False
            continue
        lower = max(lower, search.bound(root, remaining)[0])
        if limits.progress is not None:
            limits.progress(Progress(lower, search.expanded, limits.seconds))
        if lower > give_up_above:
            return Proof(search, root, remaining, lower, False, "max_depth")
        stopped = limits.reached(search.size)
        if max_expansions is not None and search.expanded >= max_expansions:
            stopped = stopped or "max_expansions"
        if settled or stopped:
            return Proof(search, root, remaining, lower, settled, None if settled else stopped)
        if (
            compiled_allowed
            and isinstance(search, PythonSearch)
            and search.expanded >= _switch_after(dimension, limits)
        ):
            compiled_allowed = False
            faster = _compiled(objective, cut_cost, dimension)
            if faster is not None:
                search, stretch = faster, stretch * 20


def _switch_after(dimension: int, limits: Limits) -> float:
    module = sys.modules.get("resgym.solver.compiled_search")
    ready = module is not None and module.is_ready()
    time_left = math.inf if limits.time_limit is None else limits.time_limit - limits.seconds
    if not ready and time_left < PATIENCE:
        return math.inf
    expansions = SWITCH_READY if ready else SWITCH_COLD
    return expansions * _moves(3) / _moves(dimension)


def _moves(dimension: int) -> int:
    """Pairs of a set and an axis in it."""
    return (dimension << (dimension - 1)) - dimension


def _compiled(objective: str, cut_cost: int, dimension: int) -> Search | None:
    try:
        from resgym.solver.compiled_search import CompiledSearch
    except ImportError:  # no numba, or one that does not fit the numpy that is there
        return None
    return CompiledSearch(objective, cut_cost, dimension)


class OptimalPlay:
    """The host's best sets, read off a settled search.

    Positions are followed in the coordinates of the table, so that every position met is in it;
    a place is such a position with the actual axis behind each of its axes.

    Args:
        proof: a settled one.
    """

    Place = tuple[Position, tuple[int, ...], int]

    def __init__(self, proof: Proof) -> None:
        self.proof = proof
        self.by_depth = proof.search.by_depth

    def start(self, points: list[tuple[int, ...]]) -> Place:
        """The place of pruned points, of which the proof's root is the canonical form."""
        position, order = canonical_order(points)
        return position, order, self.proof.remaining

    def after(self, place: Place, axes: tuple[int, ...], axis: int) -> Place:
        """The place after a move in actual axes."""
        position, order, remaining = place
        here = tuple(sorted(order.index(j) for j in axes))
        position, new = canonical_order(moved(position, here, order.index(axis)))
        return position, tuple(order[j] for j in new), remaining - 1 if remaining > 0 else -1

    def best_axes(self, place: Place) -> tuple[int, ...]:
        """A set that reaches the value, in actual axes.

        Of several it takes one with the least sum of costs over the answers, then the one that
        comes first among the actual actions.
        """
        position, order, remaining = place
        search = self.proof.search
        after = remaining - 1 if remaining > 0 else -1
        value, settled = search.bound(position, remaining)
        assert settled
        best: tuple[int, tuple[int, int], tuple[int, ...]] | None = None
        for axes in search_actions(len(order)):
            bounds = [search.bound(canonical(moved(position, axes, j)), after) for j in axes]
            costs = [cost for cost, _ in bounds]
            cost = 1 + (max(costs) if self.by_depth else sum(costs))
            if cost != value or not all(settled for _, settled in bounds):
                continue
            actual = tuple(sorted(order[j] for j in axes))
            rank = (len(actual), sum(1 << j for j in actual))
            candidate = (sum(costs), rank, actual)
            best = candidate if best is None else min(best, candidate)
        assert best is not None
        return best[2]
