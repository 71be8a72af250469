"""Lattice polytopes, in integers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

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

    def side(facet: Sequence[Vector], vector: Vector) -> int:
        found, size = eliminate([*facet, vector])
        return size if len(found) > n else 0

    facets = {facet: side(facet, centre) for facet in combinations(start, n)}
    total = abs(total)
    for vector in vectors:
        sizes = {facet: side(facet, vector) for facet in facets}
        seen = [facet for facet, inner in facets.items() if sizes[facet] * inner < 0]
        total += sum(abs(sizes[facet]) for facet in seen)
        ridges = Counter(ridge for facet in seen for ridge in combinations(facet, n - 1))
        for facet in seen:
            del facets[facet]
        for ridge, times in ridges.items():
            if times == 1:
                new = tuple(sorted((*ridge, vector)))
                facets[new] = side(new, centre)
    return total


def eliminate(vectors: Iterable[Vector]) -> tuple[list[Vector], int]:
    """Return the vectors that do not depend on earlier ones, and their determinant if it exists.

    This is Bareiss's elimination, which stays in the integers.
    """
    kept, rows = list[Vector](), list[tuple[int, list[int]]]()
    before = 1
    for vector in vectors:
        rest, before = list(vector), 1
        for column, row in rows:
            by, pivot = rest[column], row[column]
            rest = [(a * pivot - by * b) // before for a, b in zip(rest, row, strict=True)]
            before = pivot
        if any(rest):
            kept.append(vector)
            rows.append((next(i for i, entry in enumerate(rest) if entry), rest))
            before = rest[rows[-1][0]]
    swaps = sum(one > other for (one, _), (other, _) in combinations(rows, 2))
    return kept, (-1) ** swaps * before
