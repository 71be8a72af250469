"""All rules with one interface; of the other two this page is the specification.

Each has positions of its own kind. Slow and obvious on purpose, independent of the package.
"""

from collections import namedtuple
from functools import cache
from itertools import combinations

from tests.reference import rule
from tests.reference.rule import MAX_COORDINATE


@cache
def subsets(dimension, least):
    """The sets of axes by the number whose bit j is axis j."""
    sizes = range(least, dimension + 1)
    sets = [axes for size in sizes for axes in combinations(range(dimension), size)]
    return sorted(sets, key=lambda axes: sum(2**axis for axis in axes))


class Basic:
    """The default rule, as `rule.py` has it."""

    def __init__(self, polytope="dominance", reposition=False):
        self.options = polytope, reposition

    def start(self, points):
        return tuple(rule.canonical(points, *self.options))

    def rows(self, position):
        return [*position]

    def is_finished(self, position):
        return rule.is_finished([*position])

    def sets(self, position):
        return [] if self.is_finished(position) else rule.host_actions(len(position[0]))

    def answers(self, position, axes):
        return axes

    def moved(self, position, axes, axis):
        return self.start(rule.shifted([*position], axes, axis))


class Polyhedra(Basic):
    """Hironaka's polyhedra game, with coordinates in multiples of 1/unit.

    The host names a permissible set: one over which the coordinates of every point add up to 1 or
    more. The agent chooses an axis of it, where every point gets this sum less 1. The host has won
    when the coordinates of some point add up to less than 1.
    """

    def __init__(self, unit, polytope="dominance"):
        super().__init__(polytope)
        self.unit = unit

    def is_finished(self, position):
        return any(sum(point) < self.unit for point in position)

    def sets(self, position):
        return [
            axes
            for axes in subsets(len(position[0]), 1)
            if all(sum(point[k] for k in axes) >= self.unit for point in position)
        ]

    def moved(self, position, axes, axis):
        points = []
        for point in position:
            coordinates = list(point)
            coordinates[axis] = sum(point[k] for k in axes) - self.unit
            points.append(tuple(coordinates))
        return self.start(points)


# The distinguished point is None when it is no vertex any more.
Weighted = namedtuple("Weighted", ["points", "weights", "distinguished"])


class Thom(Basic):
    """The game on Thom polynomials.

    Points move as in the default rule. The agent has to take an axis of least weight in the set,
    and that weight is taken off the others of the set. Where the distinguished point is no vertex
    any more the position makes no contribution, and the game is over.
    """

    def start(self, points, weights, marked):
        lowest = [min(column) for column in zip(*points, strict=True)]
        if self.options[1]:
            marked = tuple(x - low for x, low in zip(marked, lowest, strict=True))
        kept = tuple(rule.canonical(points, *self.options))
        return Weighted(kept, weights, marked if marked in kept else None)

    def rows(self, position):
        return [*position.points]

    def is_finished(self, position):
        return len(position.points) == 1 or position.distinguished is None

    def sets(self, position):
        return [] if self.is_finished(position) else subsets(len(position.weights), 2)

    def answers(self, position, axes):
        least = min(position.weights[k] for k in axes)
        return tuple(k for k in axes if position.weights[k] == least)

    def moved(self, position, axes, axis):
        marked = position.distinguished
        weights = list(position.weights)
        for other in axes:
            if other != axis:
                weights[other] -= position.weights[axis]
        return self.start(
            rule.shifted([*position.points], axes, axis),
            tuple(weights),
            rule.shifted([marked], axes, axis)[0],
        )


def overflows(reference, position, axes, axis):
    """Whether a legal move would pass the bound."""
    taken = reference.unit if isinstance(reference, Polyhedra) else 0
    return any(sum(p[k] for k in axes) - taken > MAX_COORDINATE for p in reference.rows(position))


def is_legal(reference, position, axes, axis):
    return axes in reference.sets(position) and axis in reference.answers(position, axes)
