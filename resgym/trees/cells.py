"""The weights of a tree's leaves in cells: open cones whose weights have the same face."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, combinations
from typing import NamedTuple

from resgym.polynomials.coefficients import factored, is_degenerate, sympy_poly
from resgym.polynomials.monomials import Exponents, Point
from resgym.trees.data import ChartTree
from resgym.trees.fan import Cone, Ray, chart_rays, in_chart
from resgym.trees.lattice import eliminate, volume

Face = tuple[Point, ...]
"""The points of a position on a face of its Newton polyhedron."""


class Cell(NamedTuple):
    """An open cone of positive weights, all with the same face.

    Attributes:
        rays: what spans the cone: a part of a basis of Z^D.
        face: the points where its weights are least.
        local: these points in the other coordinates of the chart, D less the number of rays.
        volume: of the face, in units of the smallest lattice simplex.
    """

    rays: Cone
    face: Face
    local: Face
    volume: int

    @property
    def weights(self) -> Ray:
        """A weight of the cell."""
        return tuple(map(sum, zip(*self.rays, strict=True)))


def compact_cells(tree: ChartTree) -> Iterator[Cell]:
    """Cut the weights with positive entries into cells.

    A weight is in the chart that one enters on the way from it to a generic weight, so that each is
    in one chart, also where the charts do not glue. Cells whose face has fewer dimensions than
    there are other coordinates are left out; every compact face has a cell that is not.
    """
    points, dimension = tree.root.points, len(tree.variables)
    # On no wall: the determinants of walls and unit vectors are at most 2^depth.
    generic = tuple(2 ** (axis * (tree.depth + 2)) for axis in range(dimension))
    for chart, rays in zip(tree, chart_rays(tree), strict=True):
        if chart.children:
            continue
        swapped = ([*rays[:axis], generic, *rays[axis + 1 :]] for axis in range(dimension))
        beyond = {axis for axis, each in enumerate(swapped) if eliminate(each)[1] < 0}
        places = {point: in_chart(point, rays) for point in points}
        least = [*map(min, zip(*places.values(), strict=True))]
        for axes in subsets(dimension):
            cone = tuple(rays[axis] for axis in axes)
            if beyond <= {*axes} and all(map(any, zip(*cone, strict=True))):
                face = [p for p in points if all(places[p][axis] == least[axis] for axis in axes)]
                others = [axis for axis in range(dimension) if axis not in axes]
                local = tuple(tuple(places[point][axis] for axis in others) for point in face)
                if len(face) > len(others) and (size := volume(local)):
                    yield Cell(cone, tuple(face), local, size)


def subsets(dimension: int) -> Iterator[tuple[int, ...]]:
    """All sets of axes but the empty one, small ones first."""
    axes = range(dimension)
    return chain.from_iterable(combinations(axes, size) for size in range(1, dimension + 1))


def degenerate_faces(cells: Iterable[Cell], start: Exponents) -> list[str]:
    """Return the polynomials of the compact faces on which a polynomial is degenerate.

    Args:
        cells: those of a tree of it.
        start: the polynomial; without coefficients it counts as generic.
    """
    return [
        factored(sympy_poly({point: terms[point] for point in face}, start.variables))
        for terms in start.generators[:1]
        for face, local in {cell.face: cell.local for cell in cells}.items()
        # A simplex never is: a change of coordinates gives the sum of its variables and 1.
        if len(face) > len(local[0]) + 1
        and is_degenerate({at: terms[p] for at, p in zip(local, face, strict=True)})
    ]
