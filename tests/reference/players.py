"""The scripted players in plain Python: the specification of their tie rules.

A host takes a position (pruned, in descending order) and gives a tuple of axes, an agent takes both
and gives one axis. In a finished game a host answers (0, 1) and an agent the first axis. Sets of
axes of one size are compared as ascending tuples: (0, 1) < (0, 2) < (0, 3) < (1, 2).
"""

from fractions import Fraction
from itertools import combinations

from tests.reference.rule import is_finished, move, overflows, repositioned


def all_coord(points):
    """Every axis: the blow-up of the origin."""
    return (0, 1) if is_finished(points) else tuple(range(len(points[0])))


def compared_pairs(points):
    """For each pair of points, in list order: Zeillinger's key and the ordered pair of axes.

    With v the first point minus the second, the key is (L, S): L = max v - min v, and S is how
    many entries equal the maximum plus how many equal the minimum. The axes are those of the first
    minimum and of the first maximum of v, in this order, and (0, 1) where v is constant.
    """
    for first, second in combinations(points, 2):
        v = [x - y for x, y in zip(first, second, strict=True)]
        low, high = min(v), max(v)
        axes = (v.index(low), v.index(high)) if low < high else (0, 1)
        yield (high - low, v.count(low) + v.count(high)), axes


def zeillinger(points):
    """The axes of the pair of points with the least (L, S), the first such pair in list order.

    Source: D. Zeillinger, A short solution to Hironaka's polyhedra game, Enseign. Math. 52 (2006).
    """
    if is_finished(points):
        return (0, 1)
    _, axes = min(compared_pairs(points), key=lambda pair: pair[0])
    return tuple(sorted(axes))


def zeillinger_lex(points):
    """As ``zeillinger``, but of all pairs with the least (L, S) the one whose axes come first.

    The axes are compared as (axis of the minimum, axis of the maximum), so that (0, 2) comes
    before (1, 0).
    """
    if is_finished(points):
        return (0, 1)
    _, axes = min(compared_pairs(points))
    return tuple(sorted(axes))


def axis_sets(axes, least):
    """The subsets of at least ``least`` axes, small ones first, then in ascending order."""
    for size in range(least, len(axes) + 1):
        yield from combinations(axes, size)


def weak_spivakovsky(points):
    """The first smallest set of two axes or more that meets the support of every point.

    Supports are those of the repositioned points, so that translating a position changes nothing.
    """
    if is_finished(points):
        return (0, 1)
    supports = [{j for j, x in enumerate(point) if x > 0} for point in repositioned(points)]
    every = tuple(range(len(points[0])))
    return next(axes for axes in axis_sets(every, 2) if all(s & set(axes) for s in supports))


def spivakovsky(points):
    """Spivakovsky's winning strategy, by descent in the number of axes.

    Move the points to the axes (subtract the least coordinates w). Let nu be the least coordinate
    sum, and take all axes on which some point of that sum is positive: call them M. The points
    whose sum s over M is below nu are projected from that face onto the other axes, u -> u / (nu -
    s), and the same is done with them. From the second time on the points before they were moved
    are projected too, from the height 1. It ends when no point is left, or when the moved points
    contain the origin: then the first smallest set of axes with sum(w) >= 1 is taken too. There is
    one, since every projected point has coordinate sum >= 1.

    Source: M. Spivakovsky, A solution to Hironaka's polyhedra game, Arithmetic and Geometry II
    (1983), 419-432; there a polyhedron comes with the threshold 1, which nu stands for here.
    """
    if is_finished(points):
        return (0, 1)
    axes = tuple(range(len(points[0])))
    remaining = [tuple(Fraction(x) for x in point) for point in points]
    chosen = set()
    while remaining:
        least = [min(column) for column in zip(*remaining, strict=True)]
        moved = [tuple(x - low for x, low in zip(v, least, strict=True)) for v in remaining]
        nu = min(sum(u) for u in moved)
        if nu == 0:
            weight = dict(zip(axes, least, strict=True))
            chosen.update(next(J for J in axis_sets(axes, 1) if sum(weight[j] for j in J) >= 1))
            break
        face = {k for u in moved if sum(u) == nu for k, x in enumerate(u) if x > 0}
        others = [k for k in range(len(axes)) if k not in face]
        chosen.update(axes[k] for k in face)
        levels = [(moved, nu)] if len(axes) == len(points[0]) else [(moved, nu), (remaining, 1)]
        remaining = [
            tuple(v[k] / (top - height) for k in others)
            for vectors, top in levels
            for v in vectors
            if (height := sum(v[k] for k in face)) < top
        ]
        axes = tuple(axes[k] for k in others)
    return tuple(sorted(chosen))


def choose_first(points, axes):
    return min(axes)


def choose_last(points, axes):
    return max(axes)


def greedy_points(points, axes, polytope="dominance", reposition=False):
    """The axis that leaves the most points, the lowest one of several.

    A move past the bound counts as leaving the position as it is.
    """
    if is_finished(points):
        return min(axes)

    def points_left(axis):
        if overflows(points, axes, axis):
            return len(points)
        return len(move(points, axes, axis, polytope, reposition))

    return max(sorted(axes), key=points_left)


HOSTS = {
    "all_coord": all_coord,
    "spivakovsky": spivakovsky,
    "weak_spivakovsky": weak_spivakovsky,
    "zeillinger": zeillinger,
    "zeillinger_lex": zeillinger_lex,
}
AGENTS = {"choose_first": choose_first, "choose_last": choose_last, "greedy_points": greedy_points}


def play(host, agent, points, most):
    """A game of so many moves at the most: how many were played, and the last position."""
    moves = 0
    while not is_finished(points) and moves < most:
        axes = HOSTS[host](points)
        points = move(points, axes, AGENTS[agent](points, axes))
        moves += 1
    return moves, points
