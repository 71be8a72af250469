"""Optimal play by trying everything, in plain Python on the reference rule.

No symmetry, no bounds but the obvious ones: slow, and independent of the package. Only `Exhaustive`
remembers what it has tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from tests.reference.rule import Axes, Point, Position, host_actions, is_finished, move

Host = Callable[[Position], Axes]
Agent = Callable[[Position, Axes], int]


@cache
def _after(points: tuple[Point, ...], axes: Axes, axis: int) -> tuple[Point, ...]:
    return tuple(move([*points], axes, axis))


class Exhaustive:
    """The least value that a host can reach: every set is tried with every answer.

    A finished position has the value ``finished``; the cost of a set is ``move`` and the ``total``
    (`max` or `sum`) of the values after the answers.
    """

    def __init__(self, finished: int, move: int, total: Callable[[Iterable[int]], int]) -> None:
        self._finished, self._move, self._total = finished, move, total
        # Of a position the value, or None, and the limit up to which it was looked for.
        self._tried: dict[tuple[Point, ...], tuple[int | None, int]] = {}

    def value(self, points: Position) -> int:
        """The value of a position."""
        limit = 0
        while (value := self._within(tuple(points), limit)) is None:
            limit += 1
        return value

    def best_sets(self, points: Position) -> list[Axes]:
        """The sets that reach the value."""
        value, place = self.value(points), tuple(points)
        sets = host_actions(len(points[0]))
        return [axes for axes in sets if self._cost(place, axes, value) is not None]

    def _within(self, points: tuple[Point, ...], limit: int) -> int | None:
        """The value of a position, or None if it is more than a limit."""
        if is_finished([*points]):
            return self._finished if self._finished <= limit else None
        value, looked = self._tried.get(points, (None, -1))
        if value is None and looked < limit:
            room = limit
            for axes in host_actions(len(points[0])):
                cost = self._cost(points, axes, room)
                if cost is not None:
                    value, room = cost, cost - 1
            self._tried[points] = value, limit
        return value if value is not None and value <= limit else None

    def _cost(self, points: tuple[Point, ...], axes: Axes, limit: int) -> int | None:
        """The cost of a set, or None if it is more than a limit."""
        answers = [_after(points, axes, axis) for axis in axes]
        # After what is not finished comes a move at least, in sums with two answers.
        unfinished = self._move + self._total([self._finished] * 2)
        values = [self._finished if is_finished([*each]) else unfinished for each in answers]
        if self._move + self._total(values) > limit:
            return None
        for place, answer in enumerate(answers):
            others = values[:place] + values[place + 1 :]
            room = limit - self._move - (sum(others) if self._total is sum else 0)
            value = self._within(answer, room)
            if value is None:
                return None
            values[place] = value
        return self._move + self._total(values)


def least_depth(points: Position) -> int:
    """Moves on the longest branch of the shallowest tree."""
    return Exhaustive(0, 1, max).value(points)


def tree_of(points: Position, host: Host) -> tuple[int, int]:
    """Depth and number of nodes of a host's tree (which must be finite)."""
    if is_finished(points):
        return 0, 1
    axes = host(points)
    below = [tree_of(move(points, axes, axis), host) for axis in axes]
    return 1 + max(depth for depth, _ in below), 1 + sum(nodes for _, nodes in below)


def shortest_game(points: Position, agent: Agent) -> int:
    """Moves of the shortest game against an agent, by trying every set."""
    level, moves = {tuple(points)}, 0
    while not any(is_finished([*each]) for each in level):
        level = {
            _after(each, axes, agent([*each], axes))
            for each in level
            for axes in host_actions(len(each[0]))
        }
        moves += 1
    return moves
