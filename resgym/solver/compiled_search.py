"""The search of `search_table` on int64 arrays, compiled by numba, step for step.

Importing this module needs numba (``pip install 'resgym[fast]'``). All positions, moves and bounds
live in flat arrays that Python enlarges when the compiled loop reports that they are full.
"""

from __future__ import annotations

import numpy as np

from resgym.game.plain import Position, search_actions
from resgym.solver.compiled_kernels import (
    ACTIONS,
    ANSWERS,
    EXPANDED,
    FULL,
    POSITIONS,
    SETTLED,
    STACK,
    TOO_LARGE,
    WORDS,
    advance,
    insert,
    rehash,
)
from resgym.solver.search_table import NO_TREE, STEPS_PER_EXPANSION

__all__ = ["CompiledSearch", "is_ready"]


def is_ready() -> bool:
    """Whether the search has been compiled, or loaded from its cache, in this process."""
    return bool(advance.signatures)


class CompiledSearch:
    """The table as arrays; a `resgym.solver.search_table.Search`.

    Args:
        objective: ``depth`` or ``nodes``.
        cut_cost: cost of an unfinished position with no move remaining.
        dimension: number of axes D, 2 to 10.

    Raises:
        OverflowError: from `add` and `advance`, when a coordinate passes 2^58.
    """

    def __init__(self, objective: str, cut_cost: int = NO_TREE, dimension: int = 3) -> None:
        self.by_depth = objective == "depth"
        self.cut_cost = cut_cost
        actions = search_actions(dimension)
        self._sets = np.array([[j in axes for j in range(dimension)] for axes in actions])
        self._num_answers = sum(map(len, actions))
        self._counters = np.zeros(6, np.int64)
        self._root = -1
        small = 1024
        self._coords = np.empty(4 * small, np.int64)
        # start, count, left, hashes, lower: one row each, so that they grow together.
        self._numbers = np.empty((5, small), np.int64)
        self._settled = np.zeros(small, np.bool_)
        self._actions = np.empty((2, small), np.int64)
        self._moves = np.empty((2, small), np.int64)
        self._answers = np.empty(4 * small, np.int64)
        self._slots = np.full(2 * small, -1, np.int64)
        self._stack = np.empty(small, np.int64)

    @property
    def expanded(self) -> int:
        """Number of positions whose moves have been generated."""
        return int(self._counters[EXPANDED])

    @property
    def size(self) -> int:
        """Number of positions in the table."""
        return int(self._counters[POSITIONS])

    def add(self, position: Position, remaining: int = -1) -> int:
        """The number of a canonical position with so many moves remaining (-1: no limit)."""
        rows = np.array(position, np.int64)
        self._make_room(len(rows))
        start, count, left, hashes, lower = self._numbers
        return int(
            insert(
                rows, len(rows), remaining, self.by_depth, self.cut_cost, self._counters,
                self._coords, start, count, left, hashes, lower, self._settled,
                self._actions[0], self._slots,
            )
        )  # fmt: skip

    def bound(self, position: Position, remaining: int = -1) -> tuple[int, bool]:
        """The proved lower bound of a canonical position, and whether it is the value."""
        number = self.add(position, remaining)
        return int(self._numbers[4, number]), bool(self._settled[number])

    def advance(self, root: int, expansions: int) -> bool:
        """Searches on until the root is settled or that many positions have been expanded."""
        if root != self._root:
            self._root = root
            self._counters[STACK] = 0
        steps = expansions * STEPS_PER_EXPANSION
        end = self.expanded + expansions
        while True:
            start, count, left, hashes, lower = self._numbers
            status, steps = advance(
                root, end, steps, self._sets, self._num_answers, self.by_depth, self.cut_cost,
                self._counters, self._coords, start, count, left, hashes, lower, self._settled,
                self._actions[0], self._actions[1], self._slots, self._moves[0], self._moves[1],
                self._answers, self._stack,
            )  # fmt: skip
            if status == TOO_LARGE:
                raise OverflowError("a coordinate passes 2^58")
            if status != FULL:
                return bool(status == SETTLED)
            top = self._stack[self._counters[STACK] - 1]
            self._make_room(int(count[top]))

    def _make_room(self, size: int) -> None:
        """Room to expand one position of that many points."""
        counters, new = self._counters, self._num_answers
        words = size * self._sets.shape[1] * new
        self._coords = _grown(self._coords, counters[WORDS] + words)
        self._numbers = _grown(self._numbers, counters[POSITIONS] + new)
        self._settled = _grown(self._settled, counters[POSITIONS] + new)
        self._actions = _grown(self._actions, counters[POSITIONS] + new)
        self._moves = _grown(self._moves, counters[ACTIONS] + len(self._sets))
        self._answers = _grown(self._answers, counters[ANSWERS] + new)
        self._stack = _grown(self._stack, counters[STACK] + 2)
        if 2 * (counters[POSITIONS] + new) > len(self._slots):
            needed = 4 * int(counters[POSITIONS] + new)
            self._slots = np.full(1 << needed.bit_length(), -1, np.int64)
            rehash(self._slots, self._numbers[3], int(counters[POSITIONS]))


def _grown(array: np.ndarray, needed: int) -> np.ndarray:
    """The array, at least doubled in its last axis if it is shorter than needed."""
    length = array.shape[-1]
    if length >= needed:
        return array
    larger = np.empty((*array.shape[:-1], max(2 * length, int(needed))), array.dtype)
    larger[..., :length] = array
    return larger
