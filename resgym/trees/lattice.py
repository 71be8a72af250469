"""Lattice polytopes, in integers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations, compress

Vector = tuple[int, ...]


def dot(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the scalar product."""
    return sum(map(int.__mul__, one, other))


def least(ray: Sequence[int], points: Iterable[Sequence[int]]) -> int:
    """Return the least scalar product of a ray with points."""
    return min(dot(ray, point) for point in points)


def volume(points: Iterable[Sequence[int]]) -> int:
    """Return n! times the volume of the convex hull of points in Z^n; 0 where the hull is flat.

    The points are placed one by one, and each adds the simplices over the facets that it sees.
    """
    vectors = sorted({(1, *point) for point in points})
    start, total = eliminate(vectors)
    n = len(vectors[0]) - 1
    if len(start) <= n:
        return 0
    centre = tuple(map(sum, zip(*start, strict=True)))

    @cache
    def side(facet: Sequence[Vector], vector: Vector) -> int:
        found, size = eliminate([*facet, vector])
        return size if len(found) > n else 0

    facets, total = {*combinations(start, n)}, abs(total)
    for vector in vectors:
        seen = {each for each in facets if side(each, vector) * side(each, centre) < 0}
        total += sum(abs(side(each, vector)) for each in seen)
        ridges = Counter(ridge for each in seen for ridge in combinations(each, n - 1))
        outer = (ridge for ridge, times in ridges.items() if times == 1)
        facets = facets - seen | {tuple(sorted((*ridge, vector))) for ridge in outer}
    return total


def facet_order(ray: Sequence[int], points: Sequence[Sequence[int]]) -> int:
    """Return N if a ray is the normal of a facet with N > 0; else 0.

    The facet is projected along the axes on which the normal is 0.
    """
    order = least(ray, points)
    face = [tuple(compress(point, ray)) for point in points if dot(ray, point) == order]
    return order if len(eliminate(face)[0]) == len(face[0]) else 0


def eliminate(vectors: Iterable[Vector]) -> tuple[list[Vector], int]:
    """Return the vectors that do not depend on earlier ones, and their determinant if it exists.

    This is Bareiss's elimination, which stays in the integers.
    """
    kept, rows, before = list[Vector](), dict[int, list[int]](), 1
    for vector in vectors:
        rest, before = list(vector), 1
        for column, row in rows.items():
            by, pivot = rest[column], row[column]
            rest = [(a * pivot - by * b) // before for a, b in zip(rest, row, strict=True)]
            before = pivot
        if any(rest):
            kept.append(vector)
            column = next(i for i, entry in enumerate(rest) if entry)
            rows[column], before = rest, rest[column]
    swaps = sum(one > other for one, other in combinations(rows, 2))
    return kept, (-1) ** swaps * before
