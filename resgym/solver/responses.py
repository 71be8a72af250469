"""Best responses: the longest game against a fixed host, the shortest against a fixed agent.

Only one seat is left to choose, so the positions that can arise form a graph, which is explored
level by level with one call of the fixed player per level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Sized
from functools import partial
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
from resgym.solver.solution import TREE_LIMIT, Limits, Objective, Progress, Solution, grown_tree
from resgym.trees.data import Chart
from resgym.trees.growth import ResolutionTree

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

Step = Callable[[Sequence[Position], list[Position]], "str | None"]
"""Explores positions, adds the new unfinished ones to the list; returns a reason to stop or None"""


class _Fixed:
    """The fixed player, and what it can tell apart."""

    def __init__(self, position: Exponents, player: Any, role: Role) -> None:
        self.seat = Seat(player, role, position)
        if isinstance(self.seat.player, (RandomAgent, RandomHost, RandomPairHost)):
            raise ValueError(f"{role} must be deterministic, got {self.seat.name!r}")
        self.invariant = type(self.seat.player) in INVARIANT
        self.rule = OrderedRule(position.dimension)
        self.start = self.key(self.rule.start(position))

    def key(self, points: Position) -> Position:
        """One form for positions that the player cannot tell apart."""
        if not self.seat.reads_order:
            points = tuple(sorted(points))
        return reduced(list(points)) if self.invariant else points

    def after(self, points: Position, axes: tuple[int, ...], axis: int) -> Position | None:
        """The key of a next position; None if a coordinate would pass 2^59."""
        following = self.rule.after(points, axes, axis)
        return None if following is None else self.key(following)


def _explore(
    start: Position,
    step: Step,
    known: Sized,
    limits: Limits,
    max_depth: int | None,
    *,
    batch_size: int = BATCH_ROWS,
    extra: int = 0,
) -> tuple[str | None, int, int]:
    """Takes steps level by level, with all that is ``known`` counted against the limits.

    Returns:
        why it stopped (None if nothing is left), levels gone through, positions explored.
    """
    level, depth, searched = [start] if len(start) > 1 else [], 0, 0
    while level:
        if max_depth is not None and depth >= max_depth:
            return "max_depth", depth, searched
        new: list[Position] = []
        for begin in range(0, len(level), batch_size):
            batch = level[begin : begin + batch_size]
            stopped = step(batch, new) or limits.reached(len(known))
            searched += len(batch)
            if limits.progress is not None:
                limits.progress(Progress(depth + 1 + extra, searched, limits.seconds))
            if stopped is not None:
                return stopped, depth, searched
        depth, level = depth + 1, new
    return None, depth, searched


def longest_game(
    position: Exponents, host: Any, objective: Objective, max_depth: int | None, limits: Limits
) -> Solution:
    """The longest game that an agent can force on a host, or the size of the host's tree.

    Arguments as of `resgym.solve`.
    """
    fixed = _Fixed(position, host, "host")
    start = fixed.start
    graph: Graph = {start: None}
    look_again = 1000

    def step(batch: Sequence[Position], new: list[Position]) -> str | None:
        nonlocal look_again
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
                        new.append(child)
        if len(graph) < look_again:
            return None
        # Endless play may show long before all positions are known, or they may never end.
        look_again = 2 * len(graph)
        return "endless" if _costs(graph, start, by_depth=True)[start] == math.inf else None

    stopped, _, searched = _explore(start, step, graph, limits, max_depth)
    costs = _costs(graph, start, by_depth=objective == "depth")
    value = costs[start]
    if value == math.inf:
        return _solution(objective, value, None, limits, searched)
    if stopped is not None:
        return _solution(objective, value, None, limits, searched, stopped)
    grow = partial(_host_tree, position, fixed, graph, costs, objective)
    return _solution(objective, value, grow, limits, searched)


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
    if not by_depth and costs[fixed.start] > TREE_LIMIT:
        return None
    keys = {1: fixed.start}

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

    title = f"{what} host {fixed.seat.name}: {position.pretty()}"
    return grown_tree(position, choose, title, respond=respond if by_depth else None)


def shortest_game(
    position: Exponents, agent: Any, objective: Objective, max_depth: int | None, limits: Limits
) -> Solution:
    """The shortest game that a host can have against an agent; its ``nodes`` are moves + 1.

    Arguments as of `resgym.solve`.
    """
    fixed = _Fixed(position, agent, "agent")
    extra = 0 if objective == "depth" else 1
    all_sets = action_axes(position.dimension)
    reached: Reached = {fixed.start: None}
    end: Position | None = fixed.start if len(fixed.start) == 1 else None

    def step(batch: Sequence[Position], new: list[Position]) -> str | None:
        nonlocal end
        places = [place for place in batch for _ in all_sets]
        sets = list(all_sets) * len(batch)
        lost = None
        for place, axes, axis in zip(
            places, sets, fixed.seat.agent_axes(places, sets), strict=True
        ):
            child = fixed.after(place, axes, axis)
            if child is None:
                lost = "overflow"
            elif child not in reached:
                reached[child] = (place, axes)
                new.append(child)
                if len(child) == 1:
                    end = child
                    return "finished"
        return lost

    size = max(1, BATCH_ROWS // len(all_sets))
    stopped, depth, searched = _explore(
        fixed.start, step, reached, limits, max_depth, batch_size=size, extra=extra
    )
    if end is None:
        # The level on which it stopped was not gone through, so a game may end on it.
        bound = math.inf if stopped is None else depth + 1 + extra
        return _solution(objective, bound, None, limits, searched, stopped)
    sets: list[tuple[int, ...]] = []
    move = reached[end]
    while move is not None:
        sets.insert(0, move[1])
        move = reached[move[0]]

    def choose(charts: Sequence[Chart]) -> list[tuple[int, ...]]:
        return [sets[chart.depth] for chart in charts]

    def respond(charts: Sequence[Chart], chosen: Sequence[tuple[int, ...]]) -> list[int]:
        return fixed.seat.agent_axes([chart.points for chart in charts], chosen)

    title = f"shortest game against agent {fixed.seat.name}: {position.pretty()}"
    grow = partial(grown_tree, position, choose, title, respond=respond)
    return _solution(objective, len(sets) + extra, grow, limits, searched)
