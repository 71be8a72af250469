"""The search that proves values, on Python integers of any size.

A position's cost is 0 moves (or 1 node, or 1 leaf) once one point is left, and otherwise

    depth:   1 + min over the host's sets of the max over the agent's axes of the next cost
    nodes:   1 + min over the host's sets of the sum over the agent's axes of the next cost
    leaves:      min over the host's sets of the sum over the agent's axes of the next cost

The table keeps two proved bounds of the cost of every position met, up to what `outer` and
`canonical` make one. At first these are those of `resgym.solver.bounds`; where four or more axes
are left, the projections of a position along one axis are positions of the table too, which are
asked about before its moves are generated. A value is found by asking whether it is at most its
lower bound, until it is. Such a question about a position follows the set that looks best, and asks
about the answer to it that looks worst, with a smaller limit; so positions that recur do no harm.
The answers to a set get into the table when the set is first followed (most sets never are), and
what is proved of their projections by then tells how good the set can be. (Iterative
deepening with a table: Korf, "Depth-first iterative-deepening", 1985; bounds that are raised on the
way back: Bonet and Geffner, "Learning Depth-First Search", ICAPS 2006.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from resgym.game.plain import Position, canonical, moved, reduced, search_actions
from resgym.solver.bounds import (
    GOALS,
    Goal,
    Objective,
    Points,
    active_axes,
    lower_bound,
    moves_of_pairs,
    outer,
    shadows,
)

NO_TREE = 2**30
"""Cost of a position from which no tree of the allowed depth exists."""

STEPS_PER_EXPANSION = 100
"""A search also stops after this many steps per expansion that it may make, so that it returns in
time even where bounds rise for long without new positions."""

SCALE = 2520
"""Divided by every number up to ten."""


@dataclass(slots=True, eq=False)
class _Entry:
    """A position of the table; no shadows or moves while they are not generated.

    The total of the bounds of its projections tells which of two equally bad answers is worse.
    """

    points: Position
    left: int
    lower: int
    upper: int
    total: int
    shadows: list[_Entry] | None = None
    moves: list[_Move] | None = None


@dataclass(slots=True, eq=False)
class _Move:
    """A set, with bounds of its cost; no answers while these are not generated."""

    axes: tuple[int, ...]
    low: int = 0
    high: int = NO_TREE
    total: int = 0
    answers: list[_Entry] | None = None

    def take(self, lowers: list[int], goal: Goal) -> None:
        """Sets the lower bound from those of the answers."""
        self.total = sum(lowers)
        self.low = min(goal.move + (self.total if goal.by_sum else max(lowers)), NO_TREE)


class PythonSearch:
    """A table of positions with the search on it: slow, and for coordinates of any size.

    Positions are minimal points in ascending order; ``left`` is the number of moves that remain, -1
    for any number. With ``cut`` a position that cannot be resolved within these costs its lower
    bound, which makes a bound for all trees; otherwise `NO_TREE`, which forbids it.
    """

    def __init__(self, objective: Objective, cut: bool = False) -> None:
        self.objective, self.goal = objective, GOALS[objective]
        # Number of positions whose moves have been generated.
        self.expanded = 0
        self._cut = cut
        self._table: dict[tuple[int, Position], _Entry] = {}
        # Questions, each asked for the sake of the one before; kept when a search is stopped.
        self._stack: list[tuple[_Entry, int]] = []

    @property
    def size(self) -> int:
        """Number of positions in the table."""
        return len(self._table)

    def bounds(self, positions: Sequence[Points], left: int) -> list[tuple[int, int]]:
        """What is proved: the value of each position is at least and at most this."""
        entries = [self._entry(points, left) for points in positions]
        return [(entry.lower, entry.upper) for entry in entries]

    def settle(self, points: Points, left: int, highest: int, expansions: int) -> None:
        """Searches until a value is proved, its bound is above ``highest``, or effort is spent."""
        root = self._entry(points, left)
        end, steps = self.expanded + expansions, expansions * STEPS_PER_EXPANSION
        stack = self._stack
        while root.lower < root.upper and root.lower <= highest:
            if not stack or stack[0] != (root, root.lower):
                stack[:] = [(root, root.lower)]
            while stack:
                entry, limit = stack[-1]
                if entry.lower > limit or entry.upper <= limit:
                    stack.pop()
                    continue
                if steps <= 0:
                    return
                steps -= 1
                asked, shut = self._shadow(entry, limit)
                if asked is None and entry.lower <= limit:
                    if entry.moves is None:
                        if self.expanded >= end:
                            return
                        steps -= 10
                    asked = self._answer(entry, limit, shut)
                if asked is not None:
                    stack.append(asked)

    def _entry(self, points: Points, left: int) -> _Entry:
        form = canonical(outer(reduced(points)))
        key = (left, form)
        entry = self._table.get(key)
        if entry is None:
            lower, upper = lower_bound(form, self.objective), NO_TREE
            if len(form) > 1 and left >= 0 and lower_bound(form) > left:
                lower = lower if self._cut else NO_TREE
                upper = lower
            elif len(active_axes(form)) <= 2:
                upper = lower
            total = sum(moves_of_pairs(form, self.goal.by_sum))
            entry = self._table[key] = _Entry(form, left, lower, upper, total)
        return entry

    def _take_shadows(self, entry: _Entry) -> bool:
        """Raises a bound to those of the projections; whether it rose."""
        if entry.shadows is None:
            entry.shadows = [self._entry(each, entry.left) for each in shadows(entry.points)]
        before = entry.lower
        if entry.shadows:
            lowers = [shadow.lower for shadow in entry.shadows if len(shadow.points) > 1]
            entry.lower, entry.total = max([before, *lowers]), sum(lowers)
        return entry.lower > before

    def _shadow(self, entry: _Entry, limit: int) -> tuple[tuple[_Entry, int] | None, set[int]]:
        """A projection to ask about, if there is one that may tell, and axes that no set may have.

        An answer along an axis leaves the projection as it is, so that it must be good for one move
        less if the set may have this axis.
        """
        self._take_shadows(entry)
        fewer = int(not self.goal.by_sum and entry.left < 0)
        asked: tuple[_Entry, int] | None = None
        shut: set[int] = set()
        for axis, shadow in zip(active_axes(entry.points), entry.shadows or [], strict=False):
            aim = max(limit - fewer, shadow.lower)
            if asked is None and aim <= limit and aim < shadow.upper:
                asked = shadow, aim
            if fewer and aim >= limit:
                shut.add(axis)
        return (asked if entry.lower <= limit else None), shut

    def _answer(self, entry: _Entry, limit: int, shut: set[int]) -> tuple[_Entry, int] | None:
        """Sharpens the bounds of a position; the answer to ask about if they do not tell."""
        if entry.moves is None:
            entry.moves = self._moves(entry)
        while True:
            for move in entry.moves:
                if move.answers is not None:
                    move.take([answer.lower for answer in move.answers], self.goal)
                    uppers = [answer.upper for answer in move.answers]
                    move.high = self.goal.move + (sum if self.goal.by_sum else max)(uppers)
                if shut & {*move.axes}:
                    move.low = max(move.low, limit + 1)
            entry.lower = max(entry.lower, min(move.low for move in entry.moves))
            entry.upper = min([entry.upper, *(move.high for move in entry.moves)])
            if entry.lower > limit or entry.upper <= limit:
                return None
            best = min((move for move in entry.moves if move.low <= limit), key=self._rank)
            if best.answers is not None:
                # Projections may have been looked at for the sake of other positions.
                if any(list(map(self._take_shadows, best.answers))):
                    continue
                break
            after = entry.left - 1 if entry.left > 0 else -1
            answers = [self._entry(moved(entry.points, best.axes, j), after) for j in best.axes]
            if entry in answers:
                # It leads back here and is of no use.
                best.low = NO_TREE
            else:
                best.answers = answers
        # The answer that looks worst is the likeliest to show that the set is no good. In sums each
        # answer has to be found out exactly, so it is asked for its lower bound.
        if self.goal.by_sum:
            open_answers = [answer for answer in best.answers if answer.upper > answer.lower]
        else:
            open_answers = [answer for answer in best.answers if answer.upper >= limit]
        asked = max(open_answers, key=attrgetter("lower", "total"))
        return asked, asked.lower if self.goal.by_sum else limit - 1

    def _rank(self, move: _Move) -> tuple[bool, int]:
        """What is looked at first: for the depth what is begun, and least bounds on average."""
        if self.goal.by_sum:
            return False, move.total
        return move.answers is None, move.total * SCALE // len(move.axes)

    def _moves(self, entry: _Entry) -> list[_Move]:
        self.expanded += 1
        active = set(active_axes(entry.points))
        moves = [_Move(axes) for axes in search_actions(len(entry.points[0])) if active >= {*axes}]
        for move in moves:
            answers = [moved(entry.points, move.axes, axis) for axis in move.axes]
            move.take([lower_bound(points, self.objective) for points in answers], self.goal)
        return moves
