"""Positions from Thom polynomials: exponents of an ideal of minors.

G. Bérczi, A. Szenes, "Thom polynomials of Morin singularities"; the game on them is played in
https://github.com/honglu2875/hironaka. Jets of order k give vectors v_1, ..., v_k in k variables:
v_1 = t e_1 and v_r = b_2r e_2 + ... + b_rr e_r. The k x k minors generate the ideal. Their columns
are of two kinds: coordinates of the vectors, and coefficients of the quadratic forms q_r, where q_r
is the sum of v_a v_b over all a + b = r.
"""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product

from sympy import ZZ, ring, symbols
from sympy.polys.matrices import DomainMatrix

from resgym import ResolutionTree, resolution_tree


def thom_points(order: int) -> list[tuple[int, ...]]:
    """Return the exponents of all monomials of the generators, for jets of an order from 2 on.

    They are in descending lexicographic order of 1 + k (k - 1) / 2 variables for order k: t, then
    b_ij row by row. The last one is the distinguished point of rule ``thom``. Games have at most
    ten axes, enough for orders up to 4.
    """
    pairs = [(0, 0), *((i, j) for i in range(1, order) for j in range(i, order))]
    space, *variables = ring(symbols(f"b:{len(pairs)}"), ZZ)
    entries = dict(zip(pairs, variables, strict=True))
    linear = [
        [entries.get((axis, row), space.zero) for row in range(order)] for axis in range(order)
    ]
    # Coefficients of e_i e_j, up to a factor 2, which changes no exponents.
    quadratic = [
        [
            sum((linear[i][a] * linear[j][row - 1 - a] for a in range(row)), space.zero)
            for row in range(order)
        ]
        for i, j in combinations_with_replacement(range(order), 2)
        if i + j < order - 1
    ]
    found: set[tuple[int, ...]] = set()
    for size in range(2, order + 1):
        columns = product(combinations(linear, size), combinations(quadratic, order - size))
        for some, others in columns:
            matrix = DomainMatrix([*some, *others], (order, order), space.to_domain())
            # The last coefficient is the determinant, up to its sign.
            found.update(matrix.charpoly()[-1].itermonoms())
    return sorted(found, reverse=True)


def main() -> ResolutionTree:
    """Grow the tree of that program for jets of order 4, which has 37 charts."""
    points = [(t + sum(others) - 4, *others) for t, *others in thom_points(4)]
    tree = resolution_tree(
        points, "weak_spivakovsky", rule="thom", weights=[1, 1, 2, 3, 2, 3, 3], reposition=True
    )
    print(tree.to_text())
    return tree


if __name__ == "__main__":
    main()
