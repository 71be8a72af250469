"""A checker of certificates, written from docs/certificates.md alone: slow, and by other ways.

Positions are compared in all orders of their axes, and two axes are played move by move.
"""

import json
from functools import cache
from itertools import combinations, permutations
from math import gcd

from tests.reference.rule import host_actions, minimal_points, shifted

COSTS = {"depth": (1, 0, max), "nodes": (1, 1, sum), "leaves": (0, 1, sum)}


@cache
def normal(points):
    kept = minimal_points(list(points))
    columns = [[x - min(column) for x in column] for column in zip(*kept, strict=True)]
    columns = [column for column in columns if max(column) > 0]
    if not columns:
        return ((),)
    factor = gcd(*(x for column in columns for x in column))
    columns = [[x // factor for x in column] for column in columns]
    orders = (sorted(zip(*order, strict=True)) for order in permutations(columns))
    return tuple(min(orders))


def after(points, axes, axis):
    return normal(tuple(shifted(points, axes, axis)))


def projections(points, size):
    axes = combinations(range(len(points[0])), size)
    return [normal(tuple(tuple(p[j] for j in chosen) for p in points)) for chosen in axes]


@cache
def in_two_axes(points, objective):
    move, finished, total = COSTS[objective]
    if len(points) == 1:
        return finished
    return move + total(in_two_axes(after(points, (0, 1), i), objective) for i in (0, 1))


class Bounds:
    def __init__(self, objective):
        self.objective, (self.move, self.finished, self.total) = objective, COSTS[objective]
        self.least = {}
        self.most = {}

    def low(self, points):
        if len(points) == 1:
            return self.finished
        found = [self.finished + self.move + self.finished]
        found += [in_two_axes(each, self.objective) for each in projections(points, 2)]
        for size in range(3, len(points[0]) + 1):
            found += [self.least.get(each, 0) for each in projections(points, size)]
        return max(found)

    def high(self, points):
        known = len(points) == 1 or len(points[0]) == 2
        return self.low(points) if known else self.most.get(points, float("inf"))

    def cost(self, points, axes, answers, bound):
        return self.move + self.total(bound(after(points, axes, axis)) for axis in answers)

    def claim(self, points, most=None, set=None, least=None, replies=None):
        here = normal(points)
        assert len(here) > 1
        sets = host_actions(len(points[0]))
        if most is not None:
            assert tuple(set) in sets
            assert self.cost(points, set, set, self.high) <= most
            self.most[here] = min(most, self.high(here))
            return
        answers = sets if replies is None else [(axis,) for axis in replies]
        for axes, tried in zip(sets, answers, strict=True):
            assert all(axis in axes for axis in tried)
            if here not in [after(points, axes, axis) for axis in tried]:
                assert self.cost(points, axes, tried, self.low) >= least
        self.least[here] = max(least, self.low(here))


def tuples(points):
    assert len({len(point) for point in points}) == 1
    return tuple(map(tuple, points))


def proved(text):
    """Objective and bounds of the first line; an exception if they are not proved."""
    first, *claims = map(json.loads, text.splitlines())
    bounds = Bounds(first["objective"])
    for claim in claims:
        bounds.claim(**{**claim, "points": tuples(claim["points"])})
    start = normal(tuples(first["start"]))
    least, most = first.get("least", 0), first.get("most", float("inf"))
    assert least <= bounds.low(start)
    assert bounds.high(start) <= most
    return first["objective"], least, most
