"""The search on arrays, whose table grows as it fills. Importing this needs numba."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from resgym.game.actions import action_axes
from resgym.game.plain import search_actions
from resgym.kernels.cpu import compilation
from resgym.solver import kernels, table
from resgym.solver.bounds import GOALS, Objective, Points
from resgym.solver.forms import LARGEST, Room
from resgym.solver.search import NO_TREE, STEPS_PER_EXPANSION

FIRST_POSITIONS = 256
"""Positions that a new table has room for, a power of two."""

Found = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Optimal moves, bounds and status of many positions; see `resgym.solver.kernels.search`."""


def is_ready() -> bool:
    """Whether the search has been compiled, or loaded from its cache, in this process."""
    return bool(kernels.search.signatures)


def is_cached() -> bool:
    """Whether the search lies compiled on disk, so that loading it takes a moment only."""
    search, one = CompiledSearch("depth", 2, 2), np.ones(1, np.int64)
    question = search.question(np.zeros((1, 2, 2), np.int64), one, one, 1, 0)
    return compilation.is_cached(kernels.search, search._table, search.room, 0, *question)


def _bits(sets: tuple[tuple[int, ...], ...]) -> np.ndarray:
    return np.array([sum(1 << axis for axis in axes) for axes in sets], np.int64)


class CompiledSearch:
    """A `resgym.solver.search.PythonSearch` on arrays, of at most ``num_points`` points each.

    For coordinates up to 2^55; `settle` raises an OverflowError beyond.
    """

    def __init__(
        self, objective: Objective, dimension: int, num_points: int, *, cut: bool = False
    ) -> None:
        self.objective, self.goal = objective, GOALS[objective]
        # Two, so that what stands for a position that is too large fits.
        num_points = max(2, num_points)
        self._num_points, self._dimension, self._cut = num_points, dimension, cut
        self._host_sets = _bits(action_axes(dimension))
        self.room = Room(
            rows=np.zeros((3, num_points, dimension), np.int64),
            columns=np.zeros((dimension, num_points), np.int64),
            pairs=np.zeros((dimension, dimension), np.int64),
            axes=np.zeros((5, dimension), np.int64),
            words=np.zeros((3, num_points * (dimension + 2)), np.int64),
        )
        self.clear()

    def clear(self) -> None:
        """Forgets all positions, and is as new."""
        few = FIRST_POSITIONS
        self._table = table.Table(
            goal=self.goal,
            cut=np.array([self._cut]),
            sets=_bits(search_actions(self._dimension)),
            counters=np.array([1, 0, 0, 0, 0]),
            words=np.empty(8 * few, np.int64),
            entries=np.empty((few, 10), np.int64),
            slots=np.full(2 * few, -1, np.int32),
            answers=np.empty(4 * few, np.int32),
            stack=np.zeros((few // 4, 2), np.int64),
        )
        # Position 0 stands for everything finished.
        self._table.entries[0, [table.LOWER, table.UPPER]] = self.goal.finished

    @property
    def size(self) -> int:
        """Number of positions in the table."""
        return int(self._table.counters[table.POSITIONS])

    @property
    def expanded(self) -> int:
        """Number of positions whose moves have been generated."""
        return int(self._table.counters[table.EXPANDED])

    def settle(self, points: Points, left: int, highest: int, expansions: int) -> None:
        """See `PythonSearch`."""
        _, _, status = self._ask([points], left, highest, expansions)
        if status[0] == kernels.TOO_LARGE:
            raise OverflowError("a coordinate passes 2^55")

    def bounds(self, positions: Sequence[Points], left: int) -> list[tuple[int, int]]:
        """See `PythonSearch`."""
        _, bounds, status = self._ask(positions, left, -1, 0)
        bounds[status == kernels.TOO_LARGE] = 0, NO_TREE
        return [(lower, upper) for lower, upper in bounds.tolist()]

    def _ask(self, positions: Sequence[Points], left: int, highest: int, expansions: int) -> Found:
        rows = np.full((len(positions), self._num_points, self._dimension), -1)
        for row, points in zip(rows, positions, strict=True):
            if max(map(max, points)) <= LARGEST:
                row[: len(points)] = points
            else:
                # Too large to be held, as is what stands for it, unless it is finished.
                row[:2] = 0
                row[0, 0], row[1, 1] = 8 * LARGEST, 1
        count = np.array([len(points) for points in positions])
        asked = np.full(len(positions), -1)
        return self.answer(self.question(rows, count, asked, 0, expansions, left, highest))

    def question(
        self,
        points: np.ndarray,
        count: np.ndarray,
        asked: np.ndarray,
        moves: int,
        expansions: int,
        left: int = -1,
        highest: int = NO_TREE,
    ) -> tuple[Any, ...]:
        """The arguments of `resgym.solver.kernels.search`, from the points on, for ``moves`` A."""
        rows = len(count)
        effort = np.full((rows, 2), expansions) * [1, STEPS_PER_EXPANSION]
        found = np.zeros((rows, moves), np.bool_), np.zeros((rows, 2), np.int64)
        status = np.zeros(rows, np.int64)
        return points, count, left, asked, self._host_sets, highest, effort, *found, status

    def answer(self, question: tuple[Any, ...], most: float = math.inf) -> Found:
        """The last three arguments of a question, written to, with a table that grows meanwhile.

        A table of so many positions as ``most`` grows no more, but is emptied, once for a row; the
        effort of a row is for all of its attempts together.
        """
        *_, optimal, bounds, status = question
        begin, cleared = 0, -1
        while begin < len(status):
            begin = int(kernels.search(self._table, self.room, begin, *question))
            if begin == len(status):
                break
            if self.size < most:
                self._grow()
            elif cleared < begin:
                # Once more with all of the room; then it is too much for it.
                self.clear()
                cleared = begin
            else:
                status[begin] = kernels.STOPPED
                begin += 1
        return optimal, bounds, status

    def _grow(self) -> None:
        """Makes room for the next step, at least, and doubles what had none."""
        old, counters = self._table, self._table.counters
        positions, new = int(counters[table.POSITIONS]), table.positions_of_step(self._dimension)
        answers = len(old.sets) * (self._dimension + 3) + 2 * new
        words = new * self._num_points * self._dimension
        slots = old.slots
        if 2 * (positions + new) > len(slots):
            slots = np.full(4 << (positions + new).bit_length(), -1, np.int32)
            table.rehash(slots, old.entries, positions)
        self._table = old._replace(
            words=_grown(old.words, counters[table.WORDS] + words),
            entries=_grown(old.entries, positions + new),
            slots=slots,
            answers=_grown(old.answers, counters[table.ANSWERS] + answers),
            stack=_grown(old.stack, counters[table.HEIGHT] + 1),
        )


def _grown(array: np.ndarray, needed: int) -> np.ndarray:
    """The array, at least doubled if it is shorter than needed."""
    if len(array) >= needed:
        return array
    larger = np.empty((max(2 * len(array), int(needed)), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
