"""Best responses: the longest game against a fixed host, the shortest against a fixed agent.

Only one seat is left to choose, so the positions that can arise form a graph, which is explored
level by level with one call of the fixed player per level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Sized
from contextlib import suppress
from functools import partial
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import Any

from resgym import players
from resgym.game.actions import action_axes
from resgym.game.plain import Position, reduced
from resgym.game.spec import GameSpec, Role
from resgym.players.ordered import OrderedRule
from resgym.players.seats import Seat
from resgym.polynomials.monomials import Exponents
from resgym.solver.search import GOALS, Goal, Objective
from resgym.solver.solution import TREE_LIMIT, Limits, Progress, Solution, grown_tree
from resgym.trees.data import Chart
from resgym.trees.growth import ResolutionTree

INVARIANT = (
    players.AllCoordHost,
    players.ChooseFirstAgent,
    players.ChooseLastAgent,
    players.GreedyPointsAgent,
    players.WeakSpivakovskyHost,
    players.ZeillingerHost,
    players.ZeillingerLexHost,
)
"""Players whose answer a shift or a factor of the position does not change. Against them positions
that differ by these are one, so endless play is recognised; against others positions are kept as
they are. The order of the axes matters to all of them, so it is kept always."""

RANDOM = (players.RandomAgent, players.RandomHost, players.RandomPairHost)

BATCH_ROWS = 4096

Graph = dict[Position, dict[int, Position]]
"""Position -> the position after each axis of the host's set; empty while unexplored."""

Step = Callable[[Sequence[Position], list[Position]], "str | None"]
"""Explores positions, adds the new unfinished ones to the list; returns a reason to stop or None"""


class _Fixed:
    """The fixed player, and what it can tell apart."""

    def __init__(self, position: Exponents, player: Any, role: Role) -> None:
        self.seat = Seat(player, role, position)
        if isinstance(self.seat.player, RANDOM):
            raise ValueError(f"{role} must be deterministic, got {self.seat.name!r}")
        self.invariant = type(self.seat.player) in INVARIANT
        self.rule = OrderedRule(GameSpec(position.dimension))
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
            limits.progress(Progress(depth + 1 + extra, searched, limits.seconds))
            if stopped is not None:
                return stopped, depth, searched
        depth, level = depth + 1, new
    return None, depth, searched


def longest_game(
    position: Exponents, host: Any, objective: Objective, max_depth: int | None, limits: Limits
) -> Solution:
    """The longest game that an agent can force on a host, or nodes or leaves of the host's tree.

    Arguments as of `resgym.solve`.
    """
    fixed = _Fixed(position, host, "host")
    start = fixed.start
    graph: Graph = {start: {}}
    look_again = 1000

    def step(batch: Sequence[Position], new: list[Position]) -> str | None:
        nonlocal look_again
        for place, axes in zip(batch, fixed.seat.host_sets(batch), strict=True):
            following: dict[int, Position] = {}
            for axis in axes:
                child = fixed.after(place, axes, axis)
                if child is None:
                    return "overflow"
                following[axis] = child
            graph[place] = following
            for child in following.values():
                if child not in graph:
                    graph[child] = {}
                    if len(child) > 1:
                        new.append(child)
        if len(graph) < look_again:
            return None
        # Endless play may show long before all positions are known, or they may never end.
        look_again = 2 * len(graph)
        return "endless" if _costs(graph, GOALS["depth"])[start] == math.inf else None

    stopped, _, searched = _explore(start, step, graph, limits, max_depth)
    goal = GOALS[objective]
    costs = _costs(graph, goal)
    value = costs[start]
    if value == math.inf or stopped is not None:
        stopped = None if value == math.inf else stopped
        return _solution(objective, value, None, limits, searched, stopped)

    # One longest game, or the whole tree, is played again from the actual start.
    def choose(charts: Sequence[Chart]) -> list[tuple[int, ...]]:
        return [tuple(graph[fixed.key(chart.points)]) for chart in charts]

    def respond(charts: Sequence[Chart], sets: Sequence[tuple[int, ...]]) -> list[int]:
        following = [graph[fixed.key(chart.points)] for chart in charts]
        return [max(after, key=lambda axis: (costs[after[axis]], -axis)) for after in following]

    kind, followed = ("tree of", None) if goal.by_sum else ("longest game against", respond)
    title = f"{kind} host {fixed.seat.name}: {position.pretty()}"
    grow = partial(grown_tree, position, choose, title, respond=followed)
    too_large = goal.by_sum and value > TREE_LIMIT
    return _solution(objective, value, None if too_large else grow, limits, searched)


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


def _costs(graph: Graph, goal: Goal) -> dict[Position, int | float]:
    """Longest game, or nodes or leaves of the tree, from every position.

    Unexplored positions count as one move, which they take at least; a position that leads back to
    itself costs infinity, and so does whatever leads to it.
    """
    costs: dict[Position, int | float] = dict.fromkeys(graph, math.inf)
    sorter = TopologicalSorter({place: after.values() for place, after in graph.items()})
    with suppress(CycleError):  # what no cycle is reached from is sorted all the same
        sorter.prepare()
    while ready := sorter.get_ready():
        for place in ready:
            if below := [costs[child] for child in graph[place].values()]:
                costs[place] = goal.move + (sum if goal.by_sum else max)(below)
            else:
                costs[place] = goal.at_least(int(len(place) > 1))
        sorter.done(*ready)
    return costs


def shortest_game(
    position: Exponents, agent: Any, objective: Objective, max_depth: int | None, limits: Limits
) -> Solution:
    """The shortest game that a host can have against an agent; its ``nodes`` are moves + 1.

    Arguments as of `resgym.solve`.
    """
    if objective == "leaves":
        raise ValueError("objective must be 'depth' or 'nodes' with an agent, got 'leaves'")
    fixed = _Fixed(position, agent, "agent")
    extra = 0 if objective == "depth" else 1
    all_sets = action_axes(position.dimension)
    # The position and the set that each was first reached by.
    reached: dict[Position, tuple[Position, tuple[int, ...]] | None] = {fixed.start: None}
    end: Position | None = fixed.start if len(fixed.start) == 1 else None

    def step(batch: Sequence[Position], new: list[Position]) -> str | None:
        nonlocal end
        places, sets = zip(*product(batch, all_sets), strict=True)
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
