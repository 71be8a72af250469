"""The table of `resgym.solver.kernels`, which grows as it fills. Importing this needs numba."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from resgym.game.actions import action_axes
from resgym.game.plain import search_actions
from resgym.kernels.cpu import compilation
from resgym.solver import kernels
from resgym.solver.forms import LARGEST, Room
from resgym.solver.search import NO_TREE, STEPS_PER_EXPANSION

__all__ = ["CompiledSearch", "is_cached", "is_ready"]

_FEW = 256
"""Positions that a new table has room for."""

Points = Sequence[tuple[int, ...]]


def is_ready() -> bool:
    """Whether the search has been compiled, or loaded from its cache, in this process."""
    return bool(kernels.search.signatures)


def is_cached() -> bool:
    """Whether the search lies compiled on disk, so that loading it takes a moment only."""
    search = CompiledSearch("depth", 2, 2)
    return compilation.is_cached(kernels.search, *search.question([((0, 1), (1, 0))], -1, 0, 0))


def _bits(sets: tuple[tuple[int, ...], ...]) -> np.ndarray:
    return np.array([sum(1 << axis for axis in axes) for axes in sets], np.int64)


class CompiledSearch:
    """A `resgym.solver.search.Search` on arrays, of at most ``num_points`` points each."""

    def __init__(
        self, objective: str, dimension: int, num_points: int, *, cut: bool = False
    ) -> None:
        self.by_depth = objective == "depth"
        # Two, so that what stands for a position that is too large fits.
        num_points = max(2, num_points)
        self._num_points, self._dimension = num_points, dimension
        self._host_sets = _bits(action_axes(dimension))

        def numbers(*shape: int) -> np.ndarray:
            return np.zeros(shape, np.int64)

        self._room = Room(
            rows=numbers(3, num_points, dimension),
            columns=numbers(dimension, num_points),
            pairs=numbers(dimension, dimension),
            axes=numbers(4, dimension),
            words=numbers(3, num_points * (dimension + 2)),
        )
        self._table = kernels.Table(
            by_depth=np.array([self.by_depth]),
            cut=np.array([cut]),
            sets=_bits(search_actions(dimension)),
            counters=numbers(5),
            **_small(),
        )
        self.clear()

    def clear(self) -> None:
        """Forgets all positions, and is as new: how a table grew shows in where a search stops."""
        self._table = self._table._replace(**_small())
        # Position 0 stands for everything finished.
        self._table.counters[:] = [1, 0, 0, 0, 0]
        cost = 0 if self.by_depth else 1
        self._table.entries[0, [kernels.LOWER, kernels.UPPER]] = cost

    @property
    def size(self) -> int:
        """Number of positions in the table."""
        return int(self._table.counters[kernels.POSITIONS])

    @property
    def expanded(self) -> int:
        """Number of positions whose moves have been generated."""
        return int(self._table.counters[kernels.EXPANDED])

    def settle(self, points: Points, left: int, highest: int, expansions: int) -> None:
        """See `Search`."""
        status = self._answer([points], left, highest, expansions)[1]
        if status[0] == kernels.TOO_LARGE:
            raise OverflowError("a coordinate passes 2^55")

    def bounds(self, positions: Sequence[Points], left: int) -> list[tuple[int, int]]:
        """See `Search`."""
        bounds, status = self._answer(positions, left, -1, 0)
        bounds[status == kernels.TOO_LARGE] = 0, NO_TREE
        return [(lower, upper) for lower, upper in bounds.tolist()]

    def _answer(
        self, positions: Sequence[Points], left: int, highest: int, expansions: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bounds int64 [N, 2] and status int64 [N]."""
        end = self.expanded + expansions
        while True:
            question = self.question(positions, left, highest, end - self.expanded)
            if kernels.search(*question) == len(positions):
                return question[-2], question[-1]
            self.grow()

    def question(
        self, positions: Sequence[Points], left: int, highest: int, expansions: int
    ) -> tuple[Any, ...]:
        """The arguments of `resgym.solver.kernels.search` for the bounds of positions."""
        number = len(positions)
        rows = np.full((number, self._num_points, self._dimension), -1)
        count = np.array([len(points) for points in positions])
        for row, points in zip(rows, positions, strict=True):
            if max(map(max, points)) <= LARGEST:
                row[: len(points)] = points
            else:
                # Too large to be held, as is what stands for it, unless it is finished.
                row[:2] = 0
                row[0, 0], row[1, 1] = 8 * LARGEST, 1
        arrays = np.zeros((number, 0), np.bool_), np.zeros((number, 2), np.int64)
        effort = np.array([expansions, STEPS_PER_EXPANSION * expansions])
        return (
            self._table, self._room, rows, count, left, np.full(number, -1), self._host_sets,
            highest, effort, 0, *arrays, np.zeros(number, np.int64),
        )  # fmt: skip

    def label(
        self,
        points: np.ndarray,
        count: np.ndarray,
        asked: np.ndarray,
        expansions: int,
        begin: int,
        *answers: np.ndarray,
    ) -> int:
        """Optimal moves of many positions; see `resgym.solver.kernels.search`."""
        effort = np.array([expansions, STEPS_PER_EXPANSION * expansions])
        setting = self._host_sets, NO_TREE, effort
        return int(
            kernels.search(
                self._table, self._room, points, count, -1, asked, *setting, begin, *answers
            )
        )

    def canonical(
        self, points: np.ndarray, count: np.ndarray, forms: np.ndarray, digests: np.ndarray
    ) -> None:
        """Canonical forms of many positions; see `resgym.solver.kernels.canonical_batch`."""
        kernels.canonical_batch(self._room, points, count, forms, digests)

    def grow(self) -> None:
        """Makes room for the next step, at least, and doubles what had none."""
        table, counters = self._table, self._table.counters
        positions, new = int(counters[kernels.POSITIONS]), 3 * self._dimension
        answers = len(table.sets) * (self._dimension + 3) + new
        words = new * self._num_points * self._dimension
        slots = table.slots
        if 2 * (positions + new) > len(slots):
            slots = np.full(4 << (positions + new).bit_length(), -1, np.int32)
            kernels.rehash(slots, table.entries, positions)
        self._table = table._replace(
            words=_grown(table.words, counters[kernels.WORDS] + words),
            entries=_grown(table.entries, positions + new),
            slots=slots,
            answers=_grown(table.answers, counters[kernels.ANSWERS] + answers),
            # How full it was is not known.
            stack=_grown(table.stack, min(2 * len(table.stack), 2**14)),
        )


def _small() -> dict[str, np.ndarray]:
    """The parts of a new table that grow."""
    return {
        "words": np.empty(8 * _FEW, np.int64),
        "entries": np.empty((_FEW, 9), np.int64),
        "slots": np.full(2 * _FEW, -1, np.int32),
        "answers": np.empty(4 * _FEW, np.int32),
        "stack": np.zeros((64, 2), np.int64),
    }


def _grown(array: np.ndarray, needed: int) -> np.ndarray:
    """The array, at least doubled if it is shorter than needed."""
    if len(array) >= needed:
        return array
    larger = np.empty((max(2 * len(array), int(needed)), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
