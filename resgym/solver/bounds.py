"""What is optimised, and lower bounds of it that need no search, on integers of any size.

The depth, the nodes and the leaves of a position are at least those of its projections to two or
more axes (proof: docs/mathematics.md, "How long a game lasts at least"). In two axes every compact
edge (a, -b) of the Newton polygon lasts as many moves as Euclid's algorithm by subtraction on
(a, b) has steps: the sum of the partial quotients of a / b. The least depth is the largest of these
sums. The tree branches where an edge is left: at every node of the Stern-Brocot tree on the way to
its slope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Literal, NamedTuple

from resgym.game.plain import Position, prune

Points = Sequence[tuple[int, ...]]

WIDEST = 2**31
"""Up to this coordinate points that are no vertices are looked for: products of two fit int64."""


class Goal(NamedTuple):
    """What the host keeps small: a value that comes from those of the answers to its set.

    A finished position has the value ``finished``, another one ``move`` more than the sum of the
    values after the answers, or than the largest of them.
    """

    finished: int
    move: int
    by_sum: bool

    def at_least(self, moves: int) -> int:
        """The value of a tree with a branch, or with forks in two, of so many moves in all."""
        return self.finished + moves * (self.move + self.finished)


Objective = Literal["depth", "nodes", "leaves"]

GOALS = {"depth": Goal(0, 1, False), "nodes": Goal(1, 1, True), "leaves": Goal(1, 0, True)}


def _edges(points: Points) -> list[tuple[int, int]]:
    """Compact edges (a, b), standing for (a, -b), of a Newton polygon, the steepest first."""
    hull: list[tuple[int, ...]] = []
    for x, y in prune(points):
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y0 - y1) * (x - x1) > (y1 - y) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, y))
    return [(right[0] - left[0], left[1] - right[1]) for left, right in pairwise(hull)]


# The next three are compiled too.


def edge_moves(a: int, b: int) -> int:
    """How many moves an edge lasts: steps of Euclid's algorithm by subtraction."""
    moves = 0
    while b > 0:
        if a < b:
            a, b = b, a
        elif a < 8 * b:
            # Most quotients are small, and divisions slow.
            a -= b
            moves += 1
        else:
            moves += a // b
            a %= b
    return moves


def shared_nodes(a: int, b: int, c: int, d: int) -> int:
    """Nodes that the ways to the slopes a / b and c / d in the Stern-Brocot tree have in common."""
    common = 1
    while True:
        if a > b and c > d:
            steps = min((a - 1) // b, (c - 1) // d)
            a, c = a - steps * b, c - steps * d
        elif a < b and c < d:
            steps = min((b - 1) // a, (d - 1) // c)
            b, d = b - steps * a, d - steps * c
        else:
            return common
        common += steps


def is_covered(point: Sequence[int], one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether a point of the segment between two others is <= a point in all axes."""
    # In all axes t * slope <= height, with t from low to high, fractions.
    low, low_below, high, high_below = 0, 1, 1, 1
    for axis in range(len(point)):
        slope, height = one[axis] - other[axis], point[axis] - other[axis]
        if slope > 0:
            if height * high_below < high * slope:
                high, high_below = height, slope
        elif slope < 0:
            if height * low_below < low * slope:
                low, low_below = -height, -slope
        elif height < 0:
            return False
    return low * high_below <= high * low_below


def outer(points: Points) -> Points:
    """A reduced position without points that a segment between two others covers.

    They are no vertices of the Newton polyhedron and change no value. A point that only three or
    more others cover together stays, and so do all where a coordinate passes `WIDEST`.
    """
    if len(points) < 3 or max(map(max, points)) > WIDEST:
        return points
    pairs = list(combinations(points, 2))
    return [
        point
        for point in points
        if not any(is_covered(point, *pair) for pair in pairs if point not in pair)
    ]


def _moves_of_polygon(points: Points, by_sum: bool) -> int:
    """Moves on the longest branch of the only tree in two axes, or in the whole tree."""
    edges = _edges(points)
    lengths = [edge_moves(*edge) for edge in edges]
    if not by_sum:
        return max(lengths, default=0)
    return sum(lengths) - sum(shared_nodes(*one, *other) for one, other in pairwise(edges))


def active_axes(points: Points) -> list[int]:
    """The axes on which points differ; the others help nobody but the agent."""
    return [axis for axis, column in enumerate(zip(*points, strict=True)) if len({*column}) > 1]


def moves_of_pairs(points: Points, by_sum: bool) -> list[int]:
    """Moves of the projections of a position to two axes; see `Goal.at_least`."""
    return [
        _moves_of_polygon([(point[i], point[j]) for point in points], by_sum)
        for i, j in combinations(active_axes(points), 2)
    ]


def lower_bound(points: Points, objective: str = "depth") -> int:
    """The largest value of the projections of a position to two axes, which bounds its own.

    With only two axes on which the minimal points differ the bound is the value.
    """
    goal = GOALS[objective]
    if len(points) == 1:
        return goal.finished
    return goal.at_least(max(1, *moves_of_pairs(points, goal.by_sum)))


def shadows(points: Position) -> Iterator[list[tuple[int, ...]]]:
    """The projections of a position with four or more active axes along one axis, 0 in them."""
    active = active_axes(points)
    for axis in active if len(active) > 3 else []:
        yield prune([(*point[:axis], 0, *point[axis + 1 :]) for point in points])
