"""The least depth by iterative deepening, in plain Python on the reference rule.

Faster than `tests.reference.search`: positions that differ by a shift, a factor or an order of axes
are one, and no position takes fewer moves than its projections to two axes, where a host has only
one set. It shares no code with the package.
"""

import sys
from functools import cache
from itertools import combinations, permutations
from math import gcd

from tests.reference.rule import host_actions, minimal_points, move, repositioned

sys.setrecursionlimit(10_000)  # calls are nested as deeply as a game is long


@cache
def form(points):
    """The least of all positions that differ by a shift, a factor or an order of axes."""
    moved = repositioned([*points])
    factor = max(1, gcd(*(x for point in moved for x in point)))
    return min(
        tuple(sorted(tuple(point[axis] // factor for axis in axes) for point in moved))
        for axes in permutations(range(len(points[0])))
    )


@cache
def answers(points, axes):
    return tuple(form(tuple(move([*points], axes, axis))) for axis in axes)


@cache
def at_least(points):
    """The most moves of a projection to two axes; for two axes all moves."""
    if len(points) == 1:
        return 0
    if len(points[0]) == 2:
        return 1 + max(map(at_least, answers(points, (0, 1))))
    pairs = combinations(range(len(points[0])), 2)
    shadows = (minimal_points([tuple(p[axis] for axis in pair) for p in points]) for pair in pairs)
    return max(1, *(at_least(form(tuple(each))) for each in shadows))


class Depth:
    """The least depths of positions, and what is known of them so far."""

    def __init__(self):
        self.low = {}
        self.high = {}

    def value(self, points):
        """The least depth of a position."""
        place = form(tuple(minimal_points(points)))
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
