"""Optimal moves of many positions, for either seat, proved by the compiled search.

`resgym.solve` proves one position, with integers of any size, and grows a tree. This module labels
hundreds of positions a second with the set of optimal moves and the value. All positions share one
table, because small positions lead to the same ones again and again. Needs numba
(``pip install 'resgym[fast]'``).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from resgym.game.actions import action_axes
from resgym.game.plain import canonical
from resgym.solver.search import Objective, Points, Search, TooMuch, compiled

SOLVER_VERSION = 5
"""Raised by one when labels of an earlier version must not be trusted or compared."""

MAX_LABEL_DIMENSION = 5


class Labels(NamedTuple):
    """The labels of N positions.

    Attributes:
        optimal: bool [N, A] (host) or [N, D] (agent): the moves that reach the value; all False
            without a label.
        value: int64 [N]: the value; 0 without a label.
        solved: bool [N]: there is a label; otherwise the budget was not enough, or a coordinate
            exceeded 2^28.
    """

    optimal: np.ndarray
    value: np.ndarray
    solved: np.ndarray


class Labeller:
    """A table of positions that proves labels.

    Labels do not depend on earlier calls. Which positions the budget is enough for does; after
    `clear` the same calls give the same results.

    Args:
        dimension: number of axes D, 2 to 5.
        max_num_points: rows P of the positions.
        objective: ``depth``, ``nodes`` or ``leaves``.
        budget: positions to expand for one label, at least 1.
        room: capacity of the table in positions, about 500 bytes each; a full table is emptied.

    Raises:
        ImportError: numba is missing.
        TypeError, ValueError: an argument is out of range.
    """

    def __init__(
        self,
        dimension: int,
        max_num_points: int,
        objective: Objective = "depth",
        *,
        budget: int = 20_000,
        room: int = 2**20,
    ) -> None:
        self.dimension, self.budget, self.room = dimension, budget, room
        self._search = Search(objective, dimension, max_num_points, compiled(), room=room)

    def clear(self) -> None:
        """Forget all positions."""
        self._search.clear()

    def host(self, points: np.ndarray, count: np.ndarray) -> Labels:
        """Return the host's optimal actions, numbered as in the environments.

        Args:
            points: int64 [N, P, D], the minimal points of each position first.
            count: int64 [N], number of points of each position, at least 2.

        Raises:
            ValueError: shapes, counts or coordinates do not fit.
        """
        sets: list[tuple[int, ...]] = [()] * len(count)
        return self._labels(points, count, sets, len(action_axes(self.dimension)))

    def agent(self, points: np.ndarray, count: np.ndarray, coords: np.ndarray) -> Labels:
        """Return the agent's optimal axes, and the value, for the sets ``coords`` bool [N, D].

        An axis is optimal if the value of the position after it is greatest. The value counts this
        move: it is the depth, nodes or leaves of the best tree that begins with the host's set. The
        other arguments and errors are those of `host`.
        """
        sets = [tuple(np.flatnonzero(row).tolist()) for row in coords]
        return self._labels(points, count, sets, self.dimension)

    def digests(self, points: np.ndarray, count: np.ndarray) -> np.ndarray:
        """Return 128-bit hashes, int64 [N, 2], of the canonical forms of pruned positions.

        Positions that differ by a shift, a factor or an order of axes or points have one form.
        Arguments are those of `host`; a count may be 1.
        """
        digests = np.zeros((len(count), 2), np.int64)
        for row, place in enumerate(_positions(points, count)):
            form = repr(canonical(place)).encode()
            digests[row] = np.frombuffer(blake2b(form, digest_size=16).digest(), np.int64)
        return digests

    def _labels(
        self, points: np.ndarray, count: np.ndarray, sets: list[tuple[int, ...]], moves: int
    ) -> Labels:
        optimal, value = np.zeros((len(sets), moves), np.bool_), np.zeros(len(sets), np.int64)
        solved = np.ones(len(sets), np.bool_)
        for row, place in enumerate(_positions(points, count)):
            try:
                value[row] = self._label(place, sets[row], optimal[row])
            except (OverflowError, TooMuch):
                solved[row] = optimal[row] = False
        return Labels(optimal, value, solved)

    def _label(self, points: Points, axes: tuple[int, ...], optimal: np.ndarray) -> int:
        """Mark the optimal moves of one position; return the value."""
        search = self._search
        if search.size >= self.room:
            search.clear()
        search.allow(self.budget)
        if axes:
            values = [search.value(number) for number in search.numbers(points, axes)]
            optimal[list(axes)] = np.array(values) == max(values)
            return int(search.goal.move + (sum if search.goal.by_sum else max)(values))
        value = search.value(search.numbers(points)[0])
        for action, each in enumerate(action_axes(self.dimension)):
            optimal[action] = search.reaches(search.numbers(points, each), value)
        return int(value)


def _positions(points: np.ndarray, count: np.ndarray) -> list[Points]:
    """The positions as lists of points."""
    rows = zip(points.tolist(), count.tolist(), strict=True)
    return [[tuple(point) for point in row[:size]] for row, size in rows]
