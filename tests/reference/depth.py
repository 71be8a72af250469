"""The least depth by iterative deepening, in plain Python on the reference rule.

Positions that differ by a shift, a factor or an order of axes are one, and none takes fewer moves
than its projections to two axes, where a host has one set. No code is shared with the package.
"""

import sys
from functools import cache

from tests.reference.certificates import after, in_two_axes, normal, projections
from tests.reference.rule import host_actions

sys.setrecursionlimit(10_000)  # calls are nested as deeply as a game is long


@cache
def answers(points, axes):
    return [after(points, axes, axis) for axis in axes]


@cache
def at_least(points):
    """The most moves of a projection to two axes."""
    if len(points) == 1:
        return 0
    return max(1, *(in_two_axes(each, "depth") for each in projections(points, 2)))


class Depth:
    """The least depths of positions, and what is known of them so far."""

    def __init__(self):
        self.low = {}
        self.high = {}

    def value(self, points):
        """The least depth of a position."""
        place = normal(tuple(points))
        limit = self.low.get(place, at_least(place))
        while not self.within(place, limit):
            limit += 1
        return limit

    def within(self, place, limit):
        """Whether the least depth is at most a limit."""
        low = self.low.setdefault(place, at_least(place))
        if low > limit or len(place) == 1:
            return low <= limit
        if self.high.get(place, limit + 1) <= limit:
            return True
        sets = [answers(place, axes) for axes in host_actions(len(place[0]))]
        sets = [each for each in sets if all(self.bound(answer) < limit for answer in each)]
        for each in sorted(sets, key=lambda found: sum(map(self.bound, found))):
            hardest = sorted(each, key=self.bound, reverse=True)
            if place not in each and all(self.within(answer, limit - 1) for answer in hardest):
                self.high[place] = limit
                return True
        self.low[place] = limit + 1
        return False

    def bound(self, place):
        return self.low.get(place) or at_least(place)
