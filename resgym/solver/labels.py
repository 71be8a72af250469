"""Optimal moves of many positions at once, for either seat, proved by a compiled search.

`resgym.solve` proves one position, with integers of any size, and grows a tree. Here thousands of
positions a second are labelled with the set of all optimal moves and the value; one table serves
the whole batch, because small positions lead to the same ones again and again. Needs numba
(``pip install 'resgym[fast]'``).
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import numpy as np

from resgym.game.actions import action_axes
from resgym.game.plain import search_actions
from resgym.game.spec import MAX_NUM_POINTS, check_integer
from resgym.solver.solve import Objective

__all__ = [
    "MAX_LABEL_DIMENSION",
    "OUT_OF_BUDGET",
    "SOLVED",
    "SOLVER_VERSION",
    "TOO_LARGE",
    "CanonicalForms",
    "Labeller",
    "Labels",
]

SOLVER_VERSION = 1
"""Raised when labels of an earlier version should no longer be trusted or compared."""

MAX_LABEL_DIMENSION = 5

SOLVED, OUT_OF_BUDGET, TOO_LARGE = 0, 1, 2
"""`Labels.status`: a proved label; more than the budget; a coordinate passed 2^55."""


class Labels(NamedTuple):
    """What was proved about N positions.

    Attributes:
        optimal: bool [N, A] (host) or [N, D] (agent): the moves that reach the value; none where
            there is no label.
        value: int64 [N]: the value; 0 where there is no label.
        status: int64 [N]: `SOLVED`, `OUT_OF_BUDGET` or `TOO_LARGE`.
    """

    optimal: np.ndarray
    value: np.ndarray
    status: np.ndarray


class CanonicalForms(NamedTuple):
    """One form for all positions that differ by a shift, a factor or an order of axes or points.

    Attributes:
        points: int64 [N, P, D]: `positions.canonical`, in ascending order; absent rows -1.
        digests: int64 [N, 2]: 128 bits of hash of the form; 0 where a coordinate passed 2^55, and
            there the points are -1 too.
    """

    points: np.ndarray
    digests: np.ndarray


class Labeller:
    """A table of positions that proves labels.

    Labels do not depend on what was labelled before, but which positions the budget is enough for
    does: after `clear` the same calls give the same results.

    Args:
        dimension: number of axes D, 2 to 5.
        max_num_points: rows of the positions P.
        objective: ``depth`` or ``nodes``.
        budget: positions expanded for one label, at least 1.
        room: positions that the table holds; a full one is emptied. About 200 bytes each.

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
        from resgym.solver import label_kernels

        self._kernels: Any = label_kernels
        check_integer("dimension", dimension, 2, MAX_LABEL_DIMENSION)
        check_integer("max_num_points", max_num_points, 2, MAX_NUM_POINTS)
        check_integer("budget", budget, 1)
        check_integer("room", room, 2**10, 2**30)
        if objective not in get_args(Objective):
            raise ValueError(f"objective must be 'depth' or 'nodes', got {objective!r}")
        self.dimension, self.max_num_points = dimension, max_num_points
        self.objective, self.budget = objective, budget
        self._table = _table(label_kernels, dimension, max_num_points, objective == "depth", room)
        self.clear()

    def clear(self) -> None:
        """Forgets all positions."""
        self._kernels.clear(self._table)

    @property
    def size(self) -> int:
        """Number of positions in the table."""
        return int(self._table.counters[self._kernels.POSITIONS])

    @property
    def expanded(self) -> int:
        """Number of positions expanded since the table was empty."""
        return int(self._table.counters[self._kernels.EXPANDED])

    def host(self, points: np.ndarray, count: np.ndarray) -> Labels:
        """The host's optimal actions, in the numbering of the environments.

        Args:
            points: int64 [N, P, D], the minimal points of each position first.
            count: int64 [N], how many there are, 2 or more.

        Raises:
            ValueError: shapes, counts or coordinates that do not fit.
        """
        points, count = self._checked(points, count, 2)
        labels = self._empty(len(count), len(self._table.host_sets))
        self._kernels.label_host(self._table, points, count, self.budget, *labels)
        return labels

    def agent(self, points: np.ndarray, count: np.ndarray, coords: np.ndarray) -> Labels:
        """The agent's optimal axes, and the value after the host's choice.

        An axis is optimal if the value of the position after it is greatest. The value counts this
        move too: the depth, or the nodes, of the best tree that begins with the host's set.

        Args:
            points: int64 [N, P, D], as in `host`.
            count: int64 [N].
            coords: bool [N, D], the host's sets.

        Raises:
            ValueError: shapes, counts, coordinates or sets that do not fit.
        """
        points, count = self._checked(points, count, 2)
        coords = np.asarray(coords)
        if coords.shape != (len(count), self.dimension) or coords.dtype != np.bool_:
            raise ValueError(
                f"coords must be bool [{len(count)}, {self.dimension}], got {coords.dtype} "
                f"{list(coords.shape)}"
            )
        if (coords.sum(1) < 2).any():
            raise ValueError("coords must have at least two axes in every row")
        sets = coords.astype(np.int64) @ (1 << np.arange(self.dimension, dtype=np.int64))
        labels = self._empty(len(count), self.dimension)
        self._kernels.label_agent(self._table, points, count, sets, self.budget, *labels)
        return labels

    def canonical(self, points: np.ndarray, count: np.ndarray) -> CanonicalForms:
        """Canonical forms of pruned positions.

        Args:
            points: int64 [N, P, D], as in `host`.
            count: int64 [N], 1 or more.

        Raises:
            ValueError: shapes, counts or coordinates that do not fit.
        """
        points, count = self._checked(points, count, 1)
        forms = CanonicalForms(np.empty_like(points), np.empty((len(count), 2), np.int64))
        self._kernels.canonical_batch(self._table, points, count, *forms)
        return forms

    def _empty(self, rows: int, moves: int) -> Labels:
        return Labels(
            np.zeros((rows, moves), np.bool_), np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        )

    def _checked(
        self, points: np.ndarray, count: np.ndarray, least: int
    ) -> tuple[np.ndarray, np.ndarray]:
        points = np.ascontiguousarray(points, np.int64)
        count = np.ascontiguousarray(count, np.int64)
        shape = (self.max_num_points, self.dimension)
        if points.ndim != 3 or points.shape[1:] != shape or count.shape != points.shape[:1]:
            raise ValueError(
                f"points must be [N, {shape[0]}, {shape[1]}] and count [N], got "
                f"{list(points.shape)} and {list(count.shape)}"
            )
        if len(count) and not (least <= count.min() and count.max() <= shape[0]):
            raise ValueError(
                f"count must be in {least}..{shape[0]}, got {count.min()}..{count.max()}"
            )
        alive = np.arange(shape[0]) < count[:, None]
        if (points[alive] < 0).any() or (points[alive] >= 2**59).any():
            raise ValueError("points must have coordinates of 0 to 2^59 in the alive rows")
        return points, count


def _table(kernels: Any, dimension: int, rows: int, by_depth: bool, room: int) -> Any:
    def numbers(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.int64)

    def bits(axes: tuple[int, ...]) -> int:
        return sum(1 << axis for axis in axes)

    num_answers = sum(map(len, action_axes(dimension)))
    # What a position and its moves take on average; what is filled first makes the table full.
    return kernels.Table(
        by_depth=np.array([by_depth]),
        sets=np.array([bits(axes) for axes in search_actions(dimension)]),
        host_sets=np.array([bits(axes) for axes in action_axes(dimension)]),
        counters=numbers(kernels.NUM_COUNTERS),
        words=np.empty(room * min(rows, 6), np.int64),
        start=np.empty(room, np.int64),
        size=np.empty(room, np.int32),
        width=np.empty(room, np.int32),
        hashes=np.empty(room, np.int64),
        bounds=np.empty(room, np.int64),
        first_action=np.empty(room, np.int64),
        last_action=np.empty(room, np.int64),
        slots=np.empty(1 << (2 * room - 1).bit_length(), np.int32),
        action_start=np.empty(room * len(action_axes(dimension)) // 2, np.int64),
        action_end=np.empty(room * len(action_axes(dimension)) // 2, np.int64),
        answers=np.empty(room * num_answers // 2, np.int32),
        stack=numbers(4096),
        root=numbers(rows, dimension),
        here=numbers(rows, dimension),
        there=numbers(rows, dimension),
        below=numbers(rows, dimension),
        last=numbers(rows, dimension),
        columns=numbers(dimension, rows),
        order=numbers(dimension),
        group_end=numbers(dimension),
        lowest=numbers(dimension),
        powers=numbers(dimension),
        key=numbers(rows * dimension),
        trial=numbers(rows * dimension),
        chosen=numbers(dimension),
    )
