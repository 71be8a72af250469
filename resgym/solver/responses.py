"""Best responses: the longest game against a fixed host, the shortest against a fixed agent.

Only one seat chooses, so the positions that can occur form a graph. It is explored level by level,
with one call of the fixed player per level.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import Any

from resgym.game.exact import OrderedRule, Position, reduced
from resgym.game.spec import Axes, GameSpec, Role, action_axes
from resgym.players import own_attribute
from resgym.players.asking import Seat
from resgym.polynomials.monomials import Exponents
from resgym.solver.search import GOALS, Goal, Objective
from resgym.solver.solution import Limits, Solution, by_position, grown_tree
from resgym.trees.data import Chart
from resgym.trees.growth import ResolutionTree

BATCH_ROWS = 4096


class _Graph:
    """The positions that can occur against a fixed player.

    Positions that the player cannot tell apart are one, so endless play is recognised where a
    factor changes no answer. The order of the axes matters to every player and is kept.

    Attributes:
        after: for each position, the positions after each axis or set; empty while unexplored.
        reached: for each position, the position and the set and axis that first led to it.
        depth: number of explored levels.
        searched: positions explored.
        end: the finished position of a shortest game against an agent, once found.
    """

    def __init__(self, position: Exponents, player: Any, role: Role, limits: Limits) -> None:
        self.seat, self.limits = Seat(player, role, position), limits
        limits.started = time.perf_counter()  # not when the player was loaded
        self._reduces = own_attribute(self.seat.player, "invariant") == "scale"
        self._rule = OrderedRule(GameSpec(position.dimension))
        self._sets = action_axes(position.dimension) if role == "agent" else ()
        self.start = self.key(self._rule.start(position))
        self.after: dict[Position, dict[Any, Position]] = {self.start: {}}
        self.reached: dict[Position, tuple[Position, Axes, int]] = {}
        self.depth = self.searched = 0
        self.end: Position | None = self.start if len(self.start) == 1 else None
        self._look_again = 1000

    def key(self, points: Position) -> Position:
        """Return one form for positions that the player cannot tell apart."""
        if not self.seat.reads_order:
            points = tuple(sorted(points))
        return reduced(points) if self._reduces else points

    def explore(self, max_depth: int | None, extra: int) -> str | None:
        """Explore level by level; return why it stopped, or None if nothing is left.

        ``extra`` is added to the depth in reports.
        """
        level = [self.start] if len(self.start) > 1 else []
        size = max(1, BATCH_ROWS // max(1, len(self._sets)))
        while level:
            if max_depth is not None and self.depth >= max_depth:
                return "max_depth"
            new: list[Position] = []
            for begin in range(0, len(level), size):
                batch = level[begin : begin + size]
                stopped = self._explore(batch, new) or self.limits.reached(len(self.after))
                self.searched += len(batch)
                self.limits.report(self.depth + 1 + extra, self.searched)
                if stopped is not None:
                    return stopped
            self.depth, level = self.depth + 1, new
        return None

    def _explore(self, batch: Sequence[Position], new: list[Position]) -> str | None:
        lost = None
        for place, axes, axis in self._moves(batch):
            following = self._rule.after(place, axes, axis)
            if following is None:
                lost = "overflow"
                continue
            child = self.key(following)
            self.after[place][axes if self._sets else axis] = child
            if child not in self.after:
                self.after[child], self.reached[child] = {}, (place, axes, axis)
                if len(child) > 1:
                    new.append(child)
                elif self._sets:
                    self.end = child
                    return "finished"
        if not self._sets and len(self.after) >= self._look_again:
            # Endless play may show before all positions are known, which may never happen.
            self._look_again = 2 * len(self.after)
            if self.costs(GOALS["depth"])[self.start] == math.inf:
                return "endless"
        return lost

    def _moves(self, batch: Sequence[Position]) -> Iterator[tuple[Position, Axes, int]]:
        """Return the moves from positions where the other seat chooses."""
        if self._sets:
            places, sets = zip(*product(batch, self._sets), strict=True)
            yield from zip(places, sets, self.seat.agent_axes(places, sets), strict=True)
        else:
            for place, axes in zip(batch, self.seat.host_sets(batch), strict=True):
                yield from ((place, axes, axis) for axis in axes)

    def costs(self, goal: Goal) -> dict[Position, int | float]:
        """Return the longest game, or nodes or leaves of a host's tree, from every position.

        Unexplored positions count as one move, their minimum. A position that leads back to itself
        costs infinity, and so does whatever leads to it.
        """
        costs: dict[Position, int | float] = dict.fromkeys(self.after, math.inf)
        sorter = TopologicalSorter({place: each.values() for place, each in self.after.items()})
        with suppress(CycleError):  # positions without a cycle are sorted anyway
            sorter.prepare()
        while ready := sorter.get_ready():
            for place in ready:
                if below := [costs[child] for child in self.after[place].values()]:
                    costs[place] = goal.total(below)
                else:
                    costs[place] = goal.at_least(int(len(place) > 1))
            sorter.done(*ready)
        return costs

    def host_set(self, points: Position) -> Axes:
        """Return the set that the host chooses in a chart of its tree."""
        return tuple(self.after[self.key(points)])

    def longest_game(self, costs: dict[Position, int | float]) -> Iterator[tuple[Axes, int]]:
        """Return the sets and axes of a game that costs most."""
        place = self.start
        while after := self.after[place]:
            axis = max(after, key=lambda axis: (costs[after[axis]], -axis))
            yield tuple(after), axis
            place = after[axis]

    def shortest_game(self) -> list[tuple[Axes, int]]:
        """Return the sets and axes of the game that led to the finished position."""
        place, moves = self.end or self.start, list[tuple[Axes, int]]()
        while place != self.start:
            place, axes, axis = self.reached[place]
            moves.insert(0, (axes, axis))
        return moves


def best_response(
    position: Exponents,
    player: Any,
    role: Role,
    objective: Objective,
    max_depth: int | None,
    limits: Limits,
) -> Solution:
    """Return the longest game that an agent can force on a host, or its tree's nodes or leaves.

    Against an agent, return the shortest game that a host can have; its ``nodes`` are moves + 1.
    Arguments are those of `resgym.solve`.
    """
    if role == "agent" and objective == "leaves":
        raise ValueError("objective must be 'depth' or 'nodes' with an agent, got 'leaves'")
    graph, goal = _Graph(position, player, role, limits), GOALS[objective]
    extra = int(role == "agent" and objective == "nodes")
    stopped = graph.explore(max_depth, extra)
    costs = graph.costs(goal) if role == "host" else {}
    value: int | float = math.inf
    if role == "host":
        value = costs[graph.start]
    elif graph.end is not None:
        value = len(graph.shortest_game())
    elif stopped is not None:
        # The level on which it stopped was not gone through, so a game may end on it.
        value = graph.depth + 1
    if value == math.inf or graph.end is not None:
        stopped = None
    value += extra
    whole = role == "host" and goal.by_sum
    kind = "tree of" if whole else f"{'longest' if role == 'host' else 'shortest'} game against"
    title = f"{kind} {role} {graph.seat.name}: {position.pretty()}"

    def grow() -> ResolutionTree | None:
        if whole:
            return grown_tree(position, by_position(graph.host_set), title)
        game = [*graph.longest_game(costs)] if role == "host" else graph.shortest_game()

        def choose(charts: Sequence[Chart]) -> list[Axes]:
            return [game[chart.depth][0] for chart in charts]

        def respond(charts: Sequence[Chart], sets: Sequence[Axes]) -> list[int]:
            return [game[chart.depth][1] for chart in charts]

        return grown_tree(position, choose, title, respond=respond)

    proved, effort = stopped is None, (limits.seconds, graph.searched)
    known = value if proved else None
    shown = grow if proved and value < math.inf else None
    return Solution(known, value, known, proved, objective, *effort, stopped, shown)
