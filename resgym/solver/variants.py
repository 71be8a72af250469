"""Values of the other rules: every set is tried, with a rising limit until one is enough.

The bounds of the default rule do not hold here, and positions that differ by a shift have
different values. So only small positions can be solved.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from resgym.game.exact import OrderedRule, Position
from resgym.game.spec import Axes
from resgym.polynomials.monomials import Exponents
from resgym.solver.search import GOALS, Objective
from resgym.solver.solution import Limits, Solution, by_position, grown_tree


class _Stopped(Exception):
    """The search has reached a limit; the exception carries its name."""


class _Search:
    """Known values of positions.

    A finished position has the value of `Goal.finished`.
    """

    def __init__(self, rule: OrderedRule, objective: Objective, limits: Limits) -> None:
        self.rule, self.goal, self.limits = rule, GOALS[objective], limits
        # For each position its least possible value, and the value itself once known.
        self._table: dict[Any, tuple[int, int | None]] = {}
        self.expanded = 0

    def within(self, points: Position, limit: int) -> int | None:
        """Return the value of a position, or None if it exceeds a limit."""
        if self.rule.ending(points) is not None:
            return self.goal.finished if self.goal.finished <= limit else None
        key = self.rule.key(points)
        lower, value = self._table.get(key, (self.goal.move + self.goal.finished, None))
        if value is not None or limit < lower:
            return value if value is not None and value <= limit else None
        self.expanded += 1
        if stopped := self.limits.reached(len(self._table)):
            raise _Stopped(stopped)
        room = limit
        for axes in self.rule.sets(points):
            cost = self.cost(points, axes, room)
            if cost is not None:
                value, room = cost, cost - 1
            if room < lower:
                break
        self._table[key] = (limit + 1 if value is None else value), value
        return value

    def cost(self, points: Position, axes: Axes, limit: int) -> int | None:
        """Return the value after a set, counting the move, or None if it exceeds a limit."""
        answers, (finished, move, by_sum), total = self.rule.answers(points, axes), self.goal, 0
        for later, axis in zip(reversed(range(len(answers))), answers, strict=True):
            following = self.rule.after(points, axes, axis)
            if following is None:
                raise _Stopped("overflow")
            # Whatever comes after costs at least what a finished position does.
            spent = move + (total + later * finished if by_sum else 0)
            value = self.within(following, limit - spent)
            if value is None:
                return None
            total = total + value if by_sum else max(total, value)
        return move + total


def solve_variant(
    position: Exponents,
    rule: OrderedRule,
    objective: Objective,
    max_depth: int | None,
    limits: Limits,
) -> Solution:
    """Solve the depth or the nodes under a rule that is not the default; see `resgym.solve`.

    Raises:
        ValueError: the objective is leaves, or there is a ``max_depth`` with nodes.
    """
    kind = rule.spec.rule
    if objective == "leaves":
        raise ValueError(f"objective must be 'depth' or 'nodes' with rule {kind!r}")
    if objective == "nodes" and max_depth is not None:
        raise ValueError(f"max_depth is for objective 'depth' with rule {kind!r}")
    start = rule.start(position)
    search = _Search(rule, objective, limits)
    limit = search.goal.finished
    value: int | None = None
    stopped: str | None = None
    try:
        while (value := search.within(start, limit)) is None:
            limit += 1
            limits.report(limit, search.expanded)
            if max_depth is not None and limit > max_depth:
                raise _Stopped("max_depth")
    except _Stopped as reason:
        stopped = str(reason)

    search.limits = Limits()  # a tree of proved moves may be grown much later

    def best(points: Position) -> Axes:
        least = search.within(points, limit)
        assert least is not None
        return next(a for a in rule.sets(points) if search.cost(points, a, least) is not None)

    title = f"optimal tree of rule {kind}, {objective}: {position.pretty()}"
    choose = by_position(best)
    grow = partial(grown_tree, position, choose, title, rule=rule) if stopped is None else None
    return Solution(
        value, limit, value, value is not None, objective, limits.seconds, search.expanded,
        stopped, grow,
    )  # fmt: skip
