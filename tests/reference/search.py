"""Optimal play by trying everything, in plain Python on the reference rule.

No symmetry, no bounds but the obvious ones: slow, and independent of the package. Only `Exhaustive`
remembers what it has tried.
"""

from functools import cache

from tests.reference.rule import host_actions, is_finished, move
from tests.reference.variants import Basic

BASIC = Basic()


def _place(points):
    return tuple(points) if isinstance(points, list) else points


@cache
def _after(reference, place, axes, axis):
    return reference.moved(place, axes, axis)


class Exhaustive:
    """The least value that a host can reach: every set is tried with every answer.

    A finished position has the value ``finished``; the cost of a set is ``move`` and the ``total``
    (`max` or `sum`) of the values after the answers. Positions are those of the reference.
    """

    def __init__(self, finished, move, total, reference=BASIC):
        self._finished, self._move, self._total = finished, move, total
        self._reference = reference
        # Of a position the value, or None, and the limit up to which it was looked for.
        self._tried = {}

    def value(self, points):
        """The value of a position."""
        limit, place = 0, _place(points)
        while (value := self._within(place, limit)) is None:
            limit += 1
        return value

    def best_sets(self, points):
        """The sets that reach the value."""
        value, place = self.value(points), _place(points)
        sets = self._reference.sets(place)
        return [axes for axes in sets if self._cost(place, axes, value) is not None]

    def is_within(self, points, limit):
        """Whether the value of a position is at most a limit."""
        return self._within(_place(points), limit) is not None

    def _within(self, place, limit):
        """The value of a position, or None if it is more than a limit."""
        if self._reference.is_finished(place):
            return self._finished if self._finished <= limit else None
        value, looked = self._tried.get(place, (None, -1))
        if value is None and looked < limit:
            room = limit
            for axes in self._reference.sets(place):
                cost = self._cost(place, axes, room)
                if cost is not None:
                    value, room = cost, cost - 1
            self._tried[place] = value, limit
        return value if value is not None and value <= limit else None

    def _cost(self, place, axes, limit):
        """The cost of a set, or None if it is more than a limit."""
        answers = [
            _after(self._reference, place, axes, axis)
            for axis in self._reference.answers(place, axes)
        ]
        # After what is not finished comes a move at least, in sums of the default rule with two
        # answers.
        least = 2 if self._reference is BASIC else 1
        unfinished = self._move + self._total([self._finished] * least)
        values = [
            self._finished if self._reference.is_finished(each) else unfinished for each in answers
        ]
        if self._move + self._total(values) > limit:
            return None
        for number, answer in enumerate(answers):
            others = values[:number] + values[number + 1 :]
            room = limit - self._move - (sum(others) if self._total is sum else 0)
            value = self._within(answer, room)
            if value is None:
                return None
            values[number] = value
        return self._move + self._total(values)


def tree_of(points, host):
    """Depth and number of nodes of a host's tree (which must be finite)."""
    if is_finished(points):
        return 0, 1
    axes = host(points)
    below = [tree_of(move(points, axes, axis), host) for axis in axes]
    return 1 + max(depth for depth, _ in below), 1 + sum(nodes for _, nodes in below)


def shortest_game(points, agent):
    """Moves of the shortest game against an agent, by trying every set."""
    level, moves = {tuple(points)}, 0
    while not any(is_finished([*each]) for each in level):
        level = {
            _after(BASIC, each, axes, agent([*each], axes))
            for each in level
            for axes in host_actions(len(each[0]))
        }
        moves += 1
    return moves
