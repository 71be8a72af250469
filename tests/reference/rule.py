"""The rule of the game in plain Python integers: this page is the specification.

A position is a list of points, each a tuple of non-negative integers. The host chooses a set of at
least two axes; the agent chooses one axis of it; on that axis every point gets the sum of its
coordinates over the set; then the points that no longer matter are dropped. The game is over when
one point is left.

Slow and obvious on purpose, and independent of the package: tests play the tensor code against it.
"""

from fractions import Fraction
from functools import cache

from tests.reference.polyhedron import newton_vertices

# A move that would make a coordinate larger than this is not played, and the game ends undecided.
MAX_COORDINATE = 2**59

EXAMPLE = [(5, 0, 1), (1, 5, 1), (0, 25, 0), (0, 0, 4)]


def is_covered(point, other):
    """Whether ``other`` is <= ``point`` on every axis, which makes ``point`` no vertex."""
    return all(theirs <= own for own, theirs in zip(point, other, strict=True))


def minimal_points(points):
    """The points covered by no other one. Of equal points the first one is kept."""
    kept = []
    for index, point in enumerate(points):
        covered = any(
            is_covered(point, other) and (other != point or other_index < index)
            for other_index, other in enumerate(points)
            if other_index != index
        )
        if not covered:
            kept.append(point)
    return kept


def repositioned(points):
    """The points moved so that the least coordinate on every axis is 0."""
    least = [min(column) for column in zip(*points, strict=True)]
    return [tuple(x - low for x, low in zip(point, least, strict=True)) for point in points]


def canonical(points, polytope="dominance", reposition=False):
    """A position as it is kept: pruned, moved to the axes if wanted, in descending order."""
    kept = minimal_points([tuple(point) for point in points])
    if polytope == "newton":
        kept = newton_vertices(kept)
    if reposition:
        kept = repositioned(kept)
    return sorted(kept, reverse=True)


def is_finished(points):
    return len(points) <= 1


def is_legal(axes, axis):
    return len(axes) >= 2 and axis in axes


def shifted(points, axes, axis):
    """Every point with coordinate ``axis`` replaced by the sum of its coordinates in ``axes``."""
    return [
        tuple(sum(point[k] for k in axes) if j == axis else x for j, x in enumerate(point))
        for point in points
    ]


def overflows(points, axes, axis):
    """Whether a move would pass the bound. Finished games and illegal moves never do."""
    if is_finished(points) or not is_legal(axes, axis):
        return False
    return any(point[axis] > MAX_COORDINATE for point in shifted(points, axes, axis))


def move(points, axes, axis, polytope="dominance", reposition=False):
    """The position after one move.

    A finished game, an illegal move and a move past the bound leave it as it is.
    """
    if is_finished(points) or not is_legal(axes, axis) or overflows(points, axes, axis):
        return points
    return canonical(shifted(points, axes, axis), polytope, reposition)


@cache
def host_actions(dimension):
    """The set of every host action: the numbers below 2^d with two bits or more, in order."""
    sets = (
        tuple(axis for axis in range(dimension) if number & (1 << axis))
        for number in range(2**dimension)
    )
    return [axes for axes in sets if len(axes) >= 2]


def observed(points, max_num_points, dimension, scale=True):
    """The rows that a player sees: the points over the largest coordinate, then rows of -1."""
    largest = max((x for point in points for x in point), default=0)
    unit = max(largest, 1) if scale else 1
    rows = [tuple(Fraction(x, unit) for x in point) for point in points]
    return rows + [(Fraction(-1),) * dimension] * (max_num_points - len(rows))
