"""The values of many positions after every move, proved by the compiled search.

`resgym.solve` proves one position, with integers of any size, and grows a tree. This module solves
hundreds of positions a second. All positions share one table, because small positions lead to the
same ones again and again. Needs numba (``pip install 'resgym[fast]'``).
"""

from __future__ import annotations

from functools import partial
from hashlib import blake2b

import numpy as np
import torch

from resgym.game.exact import canonical
from resgym.game.spec import Point, action_axes
from resgym.game.state import GameState
from resgym.solver.search import Objective, Search, TooMuch, compiled

SOLVER_VERSION = 5
"""Raised by one when labels of an earlier version must not be trusted or compared."""

MAX_LABEL_DIMENSION = 5


class Labeller:
    """A table of positions that proves values.

    Values do not depend on earlier calls. Which positions the budget is enough for does.

    Args:
        dimension: number of axes D, 2 to 5.
        max_num_points: rows P of the positions.
        objective: ``depth``, ``nodes`` or ``leaves``.
        budget: positions to expand for one position, at least 1.
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
        self._empty = partial(Search, objective, dimension, max_num_points, compiled(), room=room)
        self._search = self._empty()

    def costs(
        self, points: np.ndarray, count: np.ndarray, exact: bool = True
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what positions cost after every move.

        Args:
            points: int64 [N, P, D], the minimal points of each position first.
            count: int64 [N], number of points of each position, at least 2.
            exact: prove all values. If not, it takes less effort, and only the least costs are
                exact.

        Returns:
            int64 [N, A]: the cost of each of the host's sets, numbered as in the environments, the
            move counted; if not ``exact``, of sets that are not best a lower bound above the least
            cost. int64 [N, A, D]: the value after a set and an agent's axis; -1 for axes outside
            the set, and if not ``exact``. bool [N]: all of this is proved; otherwise the budget was
            not enough, or a coordinate exceeded 2^28.

        Raises:
            ValueError: shapes, counts or coordinates do not fit.
        """
        sets = action_axes(self.dimension)
        costs = np.zeros((len(count), len(sets)), np.int64)
        after = np.full((*costs.shape, self.dimension), -1)
        solved = np.ones(len(count), np.bool_)
        for row, place in enumerate(_positions(points, count)):
            if self._search.size >= self.room:
                self._search = self._empty()
            search = self._search
            search.allow(self.budget)
            try:
                value = None if exact else search.value(search.numbers(place)[0])
                for action, axes in enumerate(sets):
                    numbers = search.numbers(place, axes)
                    if exact:
                        after[row, action, axes] = [search.value(number) for number in numbers]
                    best = exact or search.reaches(numbers, value)
                    costs[row, action] = search.cost(numbers)[best]
            except (OverflowError, TooMuch):
                solved[row] = False
        return costs, after, solved


def digests(points: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return 128-bit hashes, int64 [N, 2], of the canonical forms of pruned positions.

    Positions that differ by a shift, a factor or an order of axes or points have one form.

    Args:
        points: int64 [N, P, D], the minimal points of each position first.
        count: int64 [N], number of points of each position, at least 1.
    """
    found = np.zeros((len(count), 2), np.int64)
    for row, place in enumerate(_positions(points, count)):
        form = repr(canonical(place)).encode()
        found[row] = np.frombuffer(blake2b(form, digest_size=16).digest(), np.int64)
    return found


def _positions(points: np.ndarray, count: np.ndarray) -> list[list[Point]]:
    """The positions as lists of points."""
    return GameState(torch.from_numpy(points), torch.from_numpy(count)).point_lists()
