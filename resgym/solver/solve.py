"""Provably optimal values of positions, and trees of optimal play."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import Any

from resgym.game.exact import PLAIN_HOSTS, OrderedRule, Position, prune, reduced
from resgym.game.spec import (
    Axes,
    GameSpec,
    Role,
    check_choice,
    check_function,
    check_integer,
    hints_keywords,
)
from resgym.polynomials.monomials import Exponents
from resgym.polynomials.parse import parse
from resgym.solver.search import GOALS, Limits, Objective, Progress, Proof, check_seconds, prove
from resgym.solver.solution import Solution, best_set, by_position, grown_tree
from resgym.trees.growth import Centres, ResolutionTree, Stop, rule_of_charts

FALLBACK_NODES = 2000
"""Largest tree of Zeillinger's host that is grown as an upper bound."""


@hints_keywords
def solve(
    points: Any,
    objective: Objective = "depth",
    *,
    max_depth: int | None = None,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    agent: Any = None,
    host: Any = None,
    max_positions: int = 2_000_000,
    rule: str = "basic",
    unit: int = 1,
    weights: Sequence[int] | None = None,
    stop: Stop | None = None,
    centres: Centres = "all",
) -> Solution:
    """Compute the optimal value of a position, with proof.

    Without ``agent`` and ``host``, minimise over hosts against the worst agent: the depth, or the
    number of nodes or leaves, of a resolution tree. With ``agent``, find the shortest game that a
    host can have against this agent. With ``host``, find the longest game that an agent can force
    on this host (with ``nodes`` or ``leaves``: the size of that host's tree). Both must be
    deterministic.

    ``max_depth=0`` gives the lower bound without a search. Most positions of 20 points in three
    axes take milliseconds. The first longer search of a process waits for the compiled search to be
    loaded, and the first one ever for it to be compiled.

    Args:
        points: anything that `resgym.parse` reads.
        objective: ``depth`` (moves on the longest branch), ``nodes`` (charts, root counted) or
            ``leaves`` (charts with one point left; a single game has one, so not with ``agent``).
        max_depth: search branches of at most this many moves; not with the ``nodes`` or
            ``leaves`` of the optimum.
        time_limit: seconds after which the search stops; what was proved so far is returned.
        progress: called with a `Progress` repeatedly.
        agent: a name, a `Player`, a function or a saved model.
        host: the same for the other seat.
        max_positions: largest table, about 500 bytes an entry in three axes.
        rule: rule of the game, see docs/game.md. Rules other than ``basic`` are solved for
            ``depth`` and ``nodes``, by exhaustive search, for small positions only.
        unit: with ``polyhedra``, exponents are multiples of 1/unit.
        weights: with ``thom``, the weights of the axes, 1 by default. The last point is the
            distinguished one.
        stop: where branches may end early, ``smooth`` or ``crossings``, see
            `resgym.resolution_tree`; solved by exhaustive search, for small positions only.
        centres: which sets the host may choose, ``all`` or ``equimultiple``; likewise.

    Returns:
        A `Solution`; if stopped, with what has been proved so far.

    Raises:
        ValueError, TypeError: an argument is out of range or of a wrong type.
    """
    position = parse(points)
    check_choice("objective", objective, GOALS)
    if max_depth is not None:
        check_integer("max_depth", max_depth, 0)
    check_seconds("time_limit", time_limit)
    check_integer("max_positions", max_positions, 1)
    if progress is not None:
        check_function("progress", progress, "state")
    if host is not None and agent is not None:
        raise ValueError("agent and host must not both be given: nothing is left to optimise")
    role: Role = "agent" if host is None else "host"
    player = agent if host is None else host
    if max_depth is not None and player is None and GOALS[objective].by_sum:
        raise ValueError(f"max_depth is for objective 'depth', got {objective!r}")
    limits = Limits(time_limit, max_positions, progress)
    spec = GameSpec(position.dimension, rule=rule, unit=unit)
    if rule != "basic" or weights is not None or stop is not None or centres != "all":
        played = rule_of_charts(position, spec, weights, stop, centres)
        if player is not None:
            raise ValueError(
                "agent and host are for rule 'basic', without stop and centres, got "
                f"rule {rule!r}, stop {stop}, centres {centres}"
            )
        return _solve_variant(position, played, objective, max_depth, limits)
    if player is not None:
        # Players need torch, the least tree of a small position does not.
        from resgym.solver.responses import best_response

        return best_response(position, player, role, objective, max_depth, limits)
    highest = math.inf if max_depth is None else max_depth
    proof = prove(prune(position), objective, limits, highest=highest)
    solution = (_proved if proof.settled else _unproved)(position, proof, limits)
    return solution if max_depth is None else replace(solution, claims=None)


def _proved(position: Exponents, proof: Proof, limits: Limits) -> Solution:
    objective, value = proof.search.objective, proof.lower

    def grow() -> ResolutionTree | None:
        # Three charts of four differ from another one by a shift or a factor alone.
        known = cache(proof.search.known)
        best = cache(
            partial(best_set, goal=proof.search.goal, bounds=lambda after: known(reduced(after)))
        )
        choose = by_position(lambda points: best(reduced(points)))
        goal = "least" if objective == "depth" else "fewest"
        title = f"optimal tree, {goal} {objective}: {position.pretty()}"
        return grown_tree(position, choose, title)

    return Solution(
        value,
        value,
        value,
        True,
        objective,
        limits.seconds,
        proof.search.expanded,
        grow=grow,
        claims=(position, proof.search, None),
    )


def _unproved(position: Exponents, proof: Proof, limits: Limits) -> Solution:
    """Return a stopped search, with Zeillinger's tree as the upper bound if it is small enough."""
    zeillinger, objective = PLAIN_HOSTS["zeillinger"], proof.search.objective

    def best(points: Position) -> Axes:
        if limits.seconds_left <= 0:
            raise TimeoutError
        return zeillinger(points)

    tree, upper, host = None, None, None
    with suppress(TimeoutError):
        title = f"host zeillinger: {position.pretty()}"
        tree = grown_tree(position, by_position(best), title, FALLBACK_NODES)
    if tree:
        sizes = {"depth": tree.depth, "nodes": tree.num_nodes, "leaves": tree.num_leaves}
        upper, host = sizes[objective], zeillinger
    return Solution(
        None,
        proof.lower,
        upper,
        False,
        objective,
        limits.seconds,
        proof.search.expanded,
        proof.stopped,
        grow=lambda: tree,
        claims=(position, proof.search, host),
    )


class _Stopped(Exception):
    """The search has reached a limit; the exception carries its name."""


class _Exhaustive:
    """The values of other rules: every set is tried, with a rising limit until one is enough.

    The bounds of the default rule do not hold here, and positions that differ by a shift have
    different values. So only small positions can be solved. A finished position has the value of
    `Goal.finished`.
    """

    def __init__(self, rule: OrderedRule, objective: Objective, limits: Limits) -> None:
        self.rule = rule
        self.goal = GOALS[objective]
        self.limits = limits
        # For each position a lower bound of its value, and the value itself once it is known.
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
        answers = self.rule.answers(points, axes)
        finished, move, by_sum = self.goal
        total = 0
        for number, axis in enumerate(answers, 1):
            following = self.rule.after(points, axes, axis)
            if following is None:
                raise _Stopped("overflow")
            # Each later answer costs at least what a finished position does.
            later = len(answers) - number
            spent = move + (total + later * finished if by_sum else 0)
            value = self.within(following, limit - spent)
            if value is None:
                return None
            total = total + value if by_sum else max(total, value)
        return move + total


def _solve_variant(
    position: Exponents,
    rule: OrderedRule,
    objective: Objective,
    max_depth: int | None,
    limits: Limits,
) -> Solution:
    """Solve the depth or the nodes under a rule that is not the default; see `resgym.solve`.

    Raises:
        ValueError: the objective is leaves.
    """
    kind = rule.spec.rule
    if kind == "basic":
        kind = "basic with stop or centres"
    if objective == "leaves":
        raise ValueError(f"objective must be 'depth' or 'nodes' with rule {kind}, got 'leaves'")
    start = rule.start(position)
    search = _Exhaustive(rule, objective, limits)
    limit = search.goal.finished
    value = None
    stopped = None
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
