"""Positions from Thom polynomials: exponents of an ideal of minors.

G. Bérczi, A. Szenes, "Thom polynomials of Morin singularities"; the game on them is played in
https://github.com/honglu2875/hironaka. Jets of order k give vectors v_1, ..., v_k in k variables:
v_1 = t e_1 and v_r = b_2r e_2 + ... + b_rr e_r. The k x k minors generate the ideal. Their columns
are of two kinds: coordinates of the vectors, and coefficients of the quadratic forms q_r, where q_r
is the sum of v_a v_b over all a + b = r.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement, permutations, product
from math import prod

from resgym.game.spec import check_integer

_MOST = 5

Polynomial = Counter[tuple[int, ...]]
"""Coefficients by exponents; a coefficient may be 0."""


def thom_points(order: int) -> list[tuple[int, ...]]:
    """Return the exponents of all monomials of the generators, for jets of an order, 2 to 5.

    They are in descending lexicographic order of 1 + k (k - 1) / 2 variables for order k: t, then
    b_ij row by row. The last one is the distinguished point of rule ``thom``. Games have at most
    ten axes, enough for orders up to 4.
    """
    order = check_integer("order", order, 2, _MOST)
    pairs = [(0, 0), *((i, j) for i in range(1, order) for j in range(i, order))]
    variables = {pair: place for place, pair in enumerate(pairs)}

    def entry(row: int, axis: int) -> Polynomial:
        place = variables.get((axis, row))
        if place is None:
            return Counter()
        return Counter({tuple(int(k == place) for k in range(len(pairs))): 1})

    vectors = [[entry(row, axis) for axis in range(order)] for row in range(order)]

    def form(row: int, i: int, j: int) -> Polynomial:
        """Return the coefficient of e_i e_j in the quadratic form of a row."""
        total: Polynomial = Counter()
        for a in range(row):
            for one, other in {(i, j), (j, i)}:
                total += _product([vectors[a][one], vectors[row - 1 - a][other]])
        return total

    linear = [[vectors[row][axis] for row in range(order)] for axis in range(order)]
    quadratic = [
        [form(row, i, j) for row in range(order)]
        for i, j in combinations_with_replacement(range(order), 2)
        if i + j < order - 1
    ]
    found: set[tuple[int, ...]] = set()
    for size in range(2, order + 1):
        for some, others in product(
            combinations(linear, size), combinations(quadratic, order - size)
        ):
            minor: Polynomial = Counter()
            for places in permutations(range(order)):
                term = _product(
                    [row[place] for row, place in zip(some + others, places, strict=True)]
                )
                even = sum(a > b for a, b in combinations(places, 2)) % 2 == 0
                (minor.update if even else minor.subtract)(term)
            found.update(point for point, coefficient in minor.items() if coefficient)
    return sorted(found, reverse=True)


def _product(factors: Sequence[Polynomial]) -> Polynomial:
    total: Polynomial = Counter()
    for terms in product(*(factor.items() for factor in factors)):
        powers, coefficients = zip(*terms, strict=True)
        total[tuple(map(sum, zip(*powers, strict=True)))] += prod(coefficients)
    return total
