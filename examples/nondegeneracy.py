"""Whether a polynomial is non-degenerate for its Newton polyhedron (Kouchnirenko 1976)."""

from __future__ import annotations

from typing import Any

import sympy

from resgym import resolution_tree
from resgym.geometry.fan import Face, compact_cells
from resgym.polynomials.monomials import is_degenerate
from resgym.polynomials.parse import read


def degenerate_faces(polynomial: Any, *, max_nodes: int = 10_000) -> tuple[Face, ...]:
    """Compact faces of the Newton polyhedron on which a polynomial is degenerate; none: it is not.

    A polynomial is degenerate on a face if its terms there and all their logarithmic derivatives
    have a common zero with no coordinate 0. Every compact face is seen in a chart of a resolution
    of its monomials, in as many variables as the face has dimensions. Exact, over the complex
    numbers. ``resgym examine`` shows them with their factors.

    Args:
        polynomial: a SymPy expression or ``Poly`` with rational coefficients.
        max_nodes: charts of Spivakovsky's tree at most.

    Returns:
        The exponents of each degenerate face.

    Raises:
        ValueError: coefficients are not rational, fewer than 2 or more than 10 variables occur, or
            the tree has more charts.
    """
    (terms,) = read(polynomial).generators
    tree = resolution_tree([*terms], "spivakovsky", max_depth=max_nodes, max_nodes=max_nodes)
    if not tree.complete:
        raise ValueError(f"polynomial needs a tree of more than max_nodes={max_nodes} charts")
    faces = {}
    for cell in compact_cells(tree):
        local = {q: terms[p] for p, q in zip(cell.face, cell.local, strict=True)}
        faces[tuple(sorted(cell.face))] = local
    edges = {face: local for face, local in sorted(faces.items()) if len(face) > 1}
    return tuple(face for face, local in edges.items() if is_degenerate(local))


def main() -> dict[str, tuple[Face, ...]]:
    found = {}
    for text in ("x**2 + y**3 + z**5", "(x + y)**2 + z**3", "(x**2 - y**3)**2 + x*y**7"):
        found[text] = degenerate_faces(sympy.sympify(text))
        print(f"{text}: {found[text] or 'non-degenerate'}")
    return found


if __name__ == "__main__":
    main()
