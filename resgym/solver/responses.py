"""Best responses: the longest game against a fixed host, the shortest against a fixed agent.

Only one seat is left to choose, so the positions that can arise form a graph, which is explored
level by level with one call of the fixed player per level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from resgym.game.actions import action_axes
from resgym.game.plain import Position, reduced
from resgym.game.spec import Role
from resgym.players import (
    AllCoordHost,
    ChooseFirstAgent,
    ChooseLastAgent,
    GreedyPointsAgent,
    RandomAgent,
    RandomHost,
    RandomPairHost,
    WeakSpivakovskyHost,
    ZeillingerHost,
    ZeillingerLexHost,
)
from resgym.players.seats import OrderedRule, Seat
from resgym.polynomials.monomials import Exponents
from resgym.solver.solution import TREE_LIMIT, Limits, Objective, Progress, Solution
from resgym.trees.data import Chart
from resgym.trees.growth import grow_tree
from resgym.trees.tree import ResolutionTree

__all__ = ["longest_game", "shortest_game"]

INVARIANT = (
    AllCoordHost,
    ChooseFirstAgent,
    ChooseLastAgent,
    GreedyPointsAgent,
    WeakSpivakovskyHost,
    ZeillingerHost,
    ZeillingerLexHost,
)
"""Players whose answer a shift or a factor of the position does not change. Against them positions
that differ by these are one, so endless play is recognised; against others positions are kept as
they are. The order of the axes matters to all of them, so it is kept always."""

BATCH_ROWS = 4096

Graph = dict[Position, "tuple[tuple[int, ...], list[Position]] | None"]
"""Position -> the host's set and the position after each of its axes; None while unexplored."""

Reached = dict[Position, "tuple[Position, tuple[int, ...]] | None"]
"""Position -> the position and the set that it was first reached by; None for the start."""


class _Fixed:
    """The fixed player, and what it can tell apart."""

    def __init__(self, position: Exponents, player: Any, role: Role) -> None:
        self.seat = Seat(player, role, position)
        if isinstance(self.seat.player, (RandomAgent, RandomHost, RandomPairHost)):
            raise ValueError(f"{role} must be deterministic, got {self.seat.name!r}")
        self.invariant = type(self.seat.player) in INVARIANT
        self.rule = OrderedRule(position.dimension)
        self.sets = action_axes(position.dimension)

    def key(self, points: Position) -> Position:
        """One form for positions that the player cannot tell apart."""
        if not self.seat.reads_order:
            points = tuple(sorted(points))
        return reduced(list(points)) if self.invariant else points

    def start(self, position: Exponents) -> Position:
        """The key of the first position."""
        return self.key(self.rule.start(position))

    def after(self, points: Position, axes: tuple[int, ...], axis: int) -> Position | None:
        """The key of a next position; None if a coordinate would pass 2^59."""
        following = self.rule.after(points, axes, axis)
        return None if following is None else self.key(following)

    def batches(self, positions: Sequence[Position], each: int) -> Iterator[Sequence[Position]]:
        """Positions in batches of so many that ``each`` rows per position stay few."""
        size = max(1, BATCH_ROWS // each)
        for begin in range(0, len(positions), size):
            yield positions[begin : begin + size]


def longest_game(
    position: Exponents, host: Any, objective: Objective, max_depth: int | None, limits: Limits
) -> Solution:
    """The longest game that an agent can force on a host, or the size of the host's tree.

    Args:
        position: the start.
        host: the fixed host.
        objective: ``depth`` or ``nodes``.
        max_depth: look at branches of at most so many moves.
        limits: when to stop.
    """
    fixed = _Fixed(position, host, "host")
    start = fixed.start(position)
    graph: Graph = {start: None}
    level = [start] if len(start) > 1 else []
    depth, searched, look_again, stopped = 0, 0, 1000, None
    while level and stopped is None:
        if max_depth is not None and depth >= max_depth:
            stopped = "max_depth"
            break
        new: dict[Position, None] = {}
        for batch in fixed.batches(level, 1):
            stopped = _explore(fixed, batch, graph, new) or limits.reached(len(graph))
            searched += len(batch)
            if limits.progress is not None:
                limits.progress(Progress(depth + 1, searched, limits.seconds))
            if stopped is not None:
                break
        depth += 1
        level = list(new)
        if len(graph) >= look_again:
            # Endless play may show long before all positions are known, or they may never end.
            look_again = 2 * len(graph)
            if _costs(graph, start, by_depth=True)[start] == math.inf:
                break
    costs = _costs(graph, start, by_depth=objective == "depth")
    value = costs[start]
    if value == math.inf:
        return _solution(objective, value, None, limits, searched)
    if stopped is not None:
        return _solution(objective, value, None, limits, searched, stopped)
    return _solution(
        objective,
        value,
        lambda: _host_tree(position, fixed, graph, costs, objective),
        limits,
        searched,
    )


def _solution(
    objective: Objective,
    value: int | float,
    grow: Callable[[], ResolutionTree | None] | None,
    limits: Limits,
    searched: int,
    stopped: str | None = None,
) -> Solution:
    """A proved value, or a lower bound if the search was stopped."""
    proved = stopped is None
    known = value if proved else None
    return Solution(known, value, known, proved, objective, limits.seconds, searched, stopped, grow)


def _explore(
    fixed: _Fixed, batch: Sequence[Position], graph: Graph, new: dict[Position, None]
) -> str | None:
    """Adds the moves of positions to the graph, and the unfinished positions met to ``new``."""
    for place, axes in zip(batch, fixed.seat.host_sets(batch), strict=True):
        following = []
        for axis in axes:
            child = fixed.after(place, axes, axis)
            if child is None:
                return "overflow"
            following.append(child)
        graph[place] = (axes, following)
        for child in following:
            if child not in graph:
                graph[child] = None
                if len(child) > 1:
                    new[child] = None
    return None


def _costs(graph: Graph, start: Position, *, by_depth: bool) -> dict[Position, int | float]:
    """Longest game, or nodes, from every position reachable from the start.

    Unexplored positions count as one move (three nodes), which they take at least; a position that
    leads back to itself costs infinity, and so does whatever leads to it.
    """
    costs: dict[Position, int | float] = {}
    entered: set[Position] = set()
    stack = [start]
    while stack:
        top = stack[-1]
        entry = graph[top]
        if top in costs:
            stack.pop()
        elif len(top) == 1:
            costs[top] = 0 if by_depth else 1
        elif entry is None:
            costs[top] = 1 if by_depth else 3
        elif top in entered:
            # A child without a cost by now lies on the way here: it leads back to itself.
            below = [costs.get(child, math.inf) for child in entry[1]]
            costs[top] = 1 + (max(below) if by_depth else sum(below))
        else:
            entered.add(top)
            stack.extend(child for child in entry[1] if child not in costs and child not in entered)
    return costs


def _host_tree(
    position: Exponents,
    fixed: _Fixed,
    graph: Graph,
    costs: dict[Position, int | float],
    objective: Objective,
) -> ResolutionTree | None:
    """One longest game, or the whole tree, played again from the actual start."""
    by_depth = objective == "depth"
    what = "longest game against" if by_depth else "tree of"
    if not by_depth and costs[fixed.start(position)] > TREE_LIMIT:
        return None
    keys = {1: fixed.start(position)}

    def entry(number: int) -> tuple[tuple[int, ...], list[Position]]:
        found = graph[keys[number]]
        assert found is not None
        return found

    def choose(charts: Sequence[Chart]) -> list[tuple[int, ...]]:
        for chart in charts:
            if chart.parent is not None and chart.axis is not None:
                axes, following = entry(chart.parent)
                keys[chart.number] = following[axes.index(chart.axis)]
        return [entry(chart.number)[0] for chart in charts]

    def respond(charts: Sequence[Chart], sets: Sequence[tuple[int, ...]]) -> list[int]:
        chosen = []
        for chart in charts:
            axes, following = entry(chart.number)
            chosen.append(max(axes, key=lambda j: (costs[following[axes.index(j)]], -j)))
        return chosen

    tree = grow_tree(
        position,
        choose,
        fixed.rule,
        max_depth=2**31,
        max_nodes=2 * TREE_LIMIT,
        respond=respond if by_depth else None,
        title=f"{what} host {fixed.seat.name}: {position.pretty()}",
    )
    return tree if tree.complete else None


def shortest_game(
    position: Exponents, agent: Any, objective: Objective, max_depth: int | None, limits: Limits
) -> Solution:
    """The shortest game that a host can have against an agent; its ``nodes`` are moves + 1.

    Args:
        position: the start.
        agent: the fixed agent.
        objective: ``depth`` or ``nodes``.
        max_depth: look at games of at most so many moves.
        limits: when to stop.
    """
    fixed = _Fixed(position, agent, "agent")
    extra = 0 if objective == "depth" else 1
    start = fixed.start(position)
    reached: Reached = {start: None}
    level, depth, searched, stopped = [start], 0, 0, None
    end: Position | None = start if len(start) == 1 else None
    while end is None and level:
        if max_depth is not None and depth >= max_depth:
            stopped = "max_depth"
            break
        new: list[Position] = []
        for batch in fixed.batches(level, len(fixed.sets)):
            end, stopped = _reach(fixed, batch, reached, new)
            searched += len(batch)
            stopped = stopped or limits.reached(len(reached))
            if limits.progress is not None:
                limits.progress(Progress(depth + 1 + extra, searched, limits.seconds))
            if end is not None or stopped is not None:
                break
        if end is None and stopped is not None:
            # This level was not gone through, so a game may end on it.
            break
        depth, level = depth + 1, new
    if end is None:
        bound = math.inf if stopped is None else depth + 1 + extra
        return _solution(objective, bound, None, limits, searched, stopped)
    sets: list[tuple[int, ...]] = []
    step: tuple[Position, tuple[int, ...]] | None = reached[end]
    while step is not None:
        sets.insert(0, step[1])
        step = reached[step[0]]
    return _solution(
        objective, len(sets) + extra, lambda: _agent_game(position, fixed, sets), limits, searched
    )


def _reach(
    fixed: _Fixed,
    batch: Sequence[Position],
    reached: Reached,
    new: list[Position],
) -> tuple[Position | None, str | None]:
    """Tries every set in some positions; returns a finished position or a reason to stop."""
    places = [place for place in batch for _ in fixed.sets]
    sets = list(fixed.sets) * len(batch)
    lost = False
    for place, axes, axis in zip(places, sets, fixed.seat.agent_axes(places, sets), strict=True):
        child = fixed.after(place, axes, axis)
        if child is None:
            lost = True
        elif child not in reached:
            reached[child] = (place, axes)
            new.append(child)
            if len(child) == 1:
                return child, None
    return None, "overflow" if lost else None


def _agent_game(position: Exponents, fixed: _Fixed, sets: list[tuple[int, ...]]) -> ResolutionTree:
    return grow_tree(
        position,
        lambda charts: [sets[chart.depth] for chart in charts],
        fixed.rule,
        max_depth=2**31,
        max_nodes=TREE_LIMIT,
        respond=lambda charts, chosen: fixed.seat.agent_axes(
            [chart.points for chart in charts], chosen
        ),
        title=f"shortest game against agent {fixed.seat.name}: {position.pretty()}",
    )
