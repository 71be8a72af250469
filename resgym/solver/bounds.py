"""Lower bounds of the value that need no search, on integers of any size.

The depth and the nodes of a position are at least those of its projections to two or more axes
(proof: docs/mathematics.md, "How long a game lasts at least"). In two axes every compact edge (a,
-b) of the Newton polygon lasts as many moves as Euclid's algorithm by subtraction on (a, b) has
steps: the sum of the partial quotients of a / b. The least depth is the largest of these sums. The
tree branches where an edge is left: at every node of the Stern-Brocot tree on the way to its slope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from resgym.game.plain import Position, prune

Points = Sequence[tuple[int, ...]]


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


# The next two are compiled too.


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


def _value_of_polygon(points: Points, by_depth: bool) -> int:
    """The least depth, or the fewest nodes, of points in two axes."""
    edges = _edges(points)
    lengths = [edge_moves(*edge) for edge in edges]
    if by_depth:
        return max(lengths, default=0)
    shared = [shared_nodes(*one, *other) for one, other in pairwise(edges)]
    return 1 + 2 * (sum(lengths) - sum(shared))


def active_axes(points: Points) -> list[int]:
    """The axes on which points differ; the others help nobody but the agent."""
    return [axis for axis, column in enumerate(zip(*points, strict=True)) if len({*column}) > 1]


def lower_bound(points: Points, objective: str = "depth") -> int:
    """The largest value of the projections of a position to two axes, which bounds its own.

    With only two axes on which the minimal points differ the bound is the value.
    """
    by_depth = objective == "depth"
    if len(points) == 1:
        return 0 if by_depth else 1
    values = [
        _value_of_polygon([(point[i], point[j]) for point in points], by_depth)
        for i, j in combinations(active_axes(points), 2)
    ]
    return max(1 if by_depth else 3, *values)


def shadows(points: Position) -> Iterator[list[tuple[int, ...]]]:
    """The projections of a position with four or more active axes along one axis, 0 in them."""
    active = active_axes(points)
    for axis in active if len(active) > 3 else []:
        yield prune([(*point[:axis], 0, *point[axis + 1 :]) for point in points])
