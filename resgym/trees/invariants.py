"""Invariants of a singularity, computed exactly from the leaves of one of its resolution trees.

They hold for polynomials that are nondegenerate on the compact faces of their Newton polyhedron, as
those with generic coefficients are. ``docs/invariants.md`` gives the theorems.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from resgym.game.formulas import monomial_text
from resgym.game.plain import prune
from resgym.polynomials.coefficients import is_degenerate, rational_terms
from resgym.polynomials.monomials import Point
from resgym.tables import Rows, Table
from resgym.trees.cells import Cell, Face, positive_cells, subsets
from resgym.trees.fan import Ray, log_canonical_threshold
from resgym.trees.lattice import dot, facet_size, volume
from resgym.trees.rational import MonodromyZeta, RationalFunction
from resgym.trees.surface import SurfaceGraph, surface_graph

MOST = 1_000_000
"""Numbers of a spectrum, eigenvalues or lattice points, with repetitions."""


class Pole(NamedTuple):
    """A candidate pole of the topological zeta function.

    Attributes:
        value: -1, or -log_discrepancy / multiplicity of a divisor.
        order: the order of the pole; 0 where the function has none.
        rays: the divisors with this value: normals of facets of the Newton polyhedron. At -1 there
            is the strict transform too.
    """

    value: Fraction
    order: int
    rays: tuple[Ray, ...]


@dataclass(frozen=True, repr=False)
class Invariants(Table):
    """Invariants of a singularity at the origin, see `tree_invariants`.

    Attributes:
        points: the exponents.
        variables: the names of the D axes.
        generic: whether the coefficients are generic; else they were given and are nondegenerate.
        zeta: the local topological zeta function (Denef and Loeser).
        candidates: its candidate poles: -1, and those of the facets of the Newton polyhedron.
        monodromy: the zeta function of the monodromy (Varchenko): the alternating product of
            det(1 - t T) on the cohomology of the Milnor fibre, degree 0 first.
        log_canonical_threshold: that of the polynomial, at most 1.
        facets: the primitive normals v of the facets, each with its N, the least <v, p>, if N > 0.
        faces: the compact faces, each with a weight that is least there.
        rays: the rays of the tree.
    """

    points: Face
    variables: tuple[str, ...]
    generic: bool
    zeta: RationalFunction
    candidates: tuple[Pole, ...]
    monodromy: MonodromyZeta
    log_canonical_threshold: Fraction
    facets: dict[Ray, int]
    faces: dict[Face, Ray]
    rays: tuple[Ray, ...]

    @property
    def poles(self) -> tuple[Pole, ...]:
        """The candidates that are poles."""
        return tuple(each for each in self.candidates if each.order)

    @property
    def euler_number(self) -> int:
        """The Euler number of the Milnor fibre: the degree of `monodromy`."""
        return sum(n * e for n, e in self.monodromy)

    @property
    def isolated(self) -> bool:
        """Whether the singularity is isolated; a smooth point counts as isolated."""
        return not isolated_fault(self.points, self.variables)

    @property
    def _sign(self) -> int:
        """(-1)^(D - 1), for an isolated singularity only."""
        if fault := isolated_fault(self.points, self.variables):
            raise ValueError(f"singularity must be isolated: {fault}")
        return (-1) ** (len(self.variables) - 1)

    @property
    def milnor_number(self) -> int:
        """The Milnor number.

        Raises:
            ValueError: the singularity is not isolated.
        """
        return self._sign * (self.euler_number - 1)

    @cached_property
    def eigenvalues(self) -> dict[Fraction, int]:
        """Each a in [0, 1) with the multiplicity of exp(2 pi i a) in the monodromy.

        Raises:
            ValueError: the singularity is not isolated, or the orders add up to over a million.
        """
        sign = self._sign
        _check_number(sum(n for n, _ in self.monodromy))
        found = Counter({Fraction(0): -sign})
        for n, e in self.monodromy:
            for k in range(n):
                found[Fraction(k, n)] += sign * e
        return _sorted(found)

    @cached_property
    def _below_one(self) -> Counter[Fraction]:
        """The heights below 1 of the points of the open orthant, with their numbers.

        The height of p is the least <v, p> / N over the facets. Of infinitely many points along an
        axis, one counts.
        """
        scale = math.lcm(*self.facets.values())
        found = list[int]()

        def walk(axis: int, levels: list[tuple[int, list[int]]]) -> None:
            if axis == len(self.variables):
                found.append(min(levels)[0])
                _check_number(len(found))
                return
            while levels := [(level, row) for level, row in levels if level < scale]:
                walk(axis + 1, levels)
                if not any(row[axis] for _, row in levels):
                    break
                levels = [(level + row[axis], row) for level, row in levels]

        rows = [[entry * scale // n for entry in ray] for ray, n in self.facets.items()]
        walk(0, [(sum(row), row) for row in rows])
        return Counter({Fraction(level, scale): n for level, n in Counter(found).items()})

    @property
    def jumping_numbers(self) -> tuple[Fraction, ...]:
        """The jumping numbers of the multiplier ideals below 1 (Howald).

        Raises:
            ValueError: they need over a million lattice points.
        """
        return tuple(sorted(self._below_one))

    def multiplier_ideal(self, c: Fraction | int) -> tuple[Point, ...]:
        """Return the exponents of the generators of the multiplier ideal of f^c (Howald).

        Raises:
            ValueError: c is below 0 or at least 1, or the box to search has over a million points.
        """
        if not 0 <= c < 1:
            raise ValueError(f"c must be at least 0 and below 1, got {c}")
        orders = [(ray, Fraction(c) * n) for ray, n in self.facets.items()]

        def inside(point: Point) -> bool:
            return all(dot(ray, point) + sum(ray) > order for ray, order in orders)

        axes = zip(*([order // x if x else 0 for x in ray] for ray, order in orders), strict=True)
        tops = [max(each) + 1 for each in axes]
        _check_number(math.prod(tops))
        found = filter(inside, product(*map(range, tops)))
        return tuple(
            p
            for p in found
            if not any(x and inside((*p[:i], x - 1, *p[i + 1 :])) for i, x in enumerate(p))
        )

    @cached_property
    def spectrum(self) -> dict[Fraction, int]:
        """The spectral numbers, between 0 and D, with their multiplicities.

        Raises:
            ValueError: the singularity is not isolated; or D > 3, and no face makes the polynomial
                semi-quasihomogeneous; or there are over a million numbers.
        """
        size = len(self.variables)
        if not _check_number(self.milnor_number):
            return {}
        if size > 3:
            for face, weights in self.faces.items():
                if not isolated_fault(face, self.variables):
                    return _quasihomogeneous(weights, dot(weights, face[0]))
            raise ValueError(
                f"spectrum in {size} variables must be that of a polynomial with an isolated "
                "singularity on one face (semi-quasihomogeneous), got none"
            )
        below = self._below_one
        found = below + Counter({size - a: number for a, number in below.items()})
        for a, number in self.eigenvalues.items():
            if not a:
                found.update({Fraction(k): number // (size - 1) for k in range(1, size)})
            elif size == 3:
                found[1 + a] += number - below[a] - below[1 - a]
        return _sorted(found)

    def surface_graph(self, minimal: bool = True) -> SurfaceGraph:
        """Return the resolution graph of a surface.

        Args:
            minimal: contract curves until the good resolution is minimal; else return the curves on
                the divisors of the tree.

        Raises:
            ValueError: there are not three variables, or the singularity is not isolated.
        """
        if len(self.variables) != 3:
            raise ValueError(f"tree must have 3 variables, got {len(self.variables)}")
        self.milnor_number  # noqa: B018  # refuses what is not isolated
        return surface_graph(self.points, self.faces, self.rays, minimal)

    def _repr_html_(self) -> str:
        surface = len(self.variables) == 3 and self.isolated
        return super()._repr_html_() + (self.surface_graph().to_svg() if surface else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, with the reason as text where an invariant does not exist."""
        found: dict[str, Any] = {"coefficients": "generic" if self.generic else "given"}
        for name in _SHOWN:
            try:
                value = getattr(self, name)
            except ValueError as error:
                value = f"none ({error})"
            if name in ("poles", "candidates"):
                value = {at: {"order": order, "rays": rays} for at, order, rays in value}
            if isinstance(value, dict):
                value = {str(each): number for each, number in value.items()}
            elif not isinstance(value, int):
                value = [*map(str, value)] if type(value) is tuple else str(value)
            found[name] = value
        return found

    def table_rows(self) -> Rows:
        """See `Table`."""
        coefficients, *rows = self.to_dict().items()
        found = [("", f"for {coefficients[1]} coefficients")]
        for name, value in rows:
            if isinstance(value, dict):
                orders = ((k, n["order"] if isinstance(n, dict) else n) for k, n in value.items())
                value = [f"{k} ({n} times)" if n > 1 else k for k, n in orders]
            text = ", ".join(value) if isinstance(value, list) else str(value)
            found.append((_SHOWN[name], text or "none"))
        return found

    def __str__(self) -> str:
        return "\n".join(": ".join(filter(None, row)) for row in self.table_rows())


_SHOWN = {
    "log_canonical_threshold": "log canonical threshold",
    "zeta": "topological zeta function at 0",
    "poles": "poles",
    "candidates": "candidate poles",
    "monodromy": "zeta function of the monodromy",
    "euler_number": "Euler number of the Milnor fibre",
    "isolated": "isolated",
    "milnor_number": "Milnor number",
    "eigenvalues": "a of the eigenvalues exp(2 pi i a)",
    "spectrum": "spectrum",
    "jumping_numbers": "jumping numbers below 1",
}


def tree_invariants(tree: Any, polynomial: Any = None) -> Invariants:
    """Return the invariants at the origin of a polynomial with the monomials of a tree's root.

    Args:
        tree: a tree of rule ``basic`` that is resolved in every chart. The host does not matter.
        polynomial: a SymPy expression with rational coefficients, in the variables of the tree. It
            is checked to be nondegenerate. By default the coefficients are generic.

    Raises:
        TypeError: the polynomial is not a SymPy object.
        ValueError: the tree is of another kind; or the polynomial has a constant term, has other
            monomials than the tree, or is degenerate on a face, which the message names.
    """
    if tree.spec.rule != "basic":
        raise ValueError(f"tree must be of rule basic, got {tree.spec.rule}")
    threshold = log_canonical_threshold(tree)
    if isinstance(threshold, float):
        raise ValueError("polynomial must be 0 at the origin, got one with a constant term")
    points, size = tree.root.points, len(tree.variables)
    given = None if polynomial is None else rational_terms(polynomial, tree.variables)
    if given and {*prune(given)} != {*points}:
        raise ValueError(f"polynomial must have the monomials of the tree, got {polynomial}")
    rays = sorted(tree.fan().rays)
    facets = {ray: order for ray in rays if (order := facet_size(ray, points)[0])}
    behind: dict[Fraction, list[Ray]] = {Fraction(-1): []}
    for ray, order in facets.items():
        behind.setdefault(Fraction(-sum(ray), order), []).append(ray)
    faces: dict[Face, Ray] = {}
    terms: Counter[tuple[bool, tuple[tuple[int, int], ...]]] = Counter()
    for cell in positive_cells(tree):
        above = size - len(cell.rays)  # the dimension of the face, where its volume is not 0
        if len(cell.face) > above and (number := volume(cell.local)):
            if given and cell.face not in faces:
                _check_face(cell, given, tree.variables)
            faces.setdefault(cell.face, tuple(map(sum, zip(*cell.rays, strict=True))))
            factors = [(dot(ray, cell.face[0]), sum(ray)) for ray in cell.rays]
            terms[above > 0, (*sorted(factors), *[(1, 1)] * (above > 0))] += (-1) ** above * number

    def value(s: int) -> Fraction:
        parts = (
            Fraction(number * s**above, math.prod(n * s + nu for n, nu in factors))
            for (above, factors), number in terms.items()
        )
        return sum(parts, Fraction(0))

    orders = {at: min(len(some) + (at == -1), size) for at, some in behind.items()}
    zeta = RationalFunction.interpolated(value, orders)
    poles = sorted(behind.items(), reverse=True)
    return Invariants(
        points,
        tree.variables,
        not given,
        zeta,
        tuple(Pole(at, zeta.poles.get(at, 0), tuple(some)) for at, some in poles),
        _monodromy(rays, points),
        min(threshold, Fraction(1)),
        facets,
        faces,
        tuple(rays),
    )


def _check_face(cell: Cell, terms: Mapping[Point, Any], variables: Sequence[str]) -> None:
    values = [terms[point] for point in cell.face]
    if is_degenerate(dict(zip(cell.local, values, strict=True))):
        face = " + ".join(monomial_text(point, variables) for point in cell.face)
        raise ValueError(f"polynomial must be nondegenerate, got one degenerate on the face {face}")


def _monodromy(rays: Sequence[Ray], points: Sequence[Ray]) -> MonodromyZeta:
    """Return the product of Varchenko's formula over the facets in all coordinate planes."""
    powers: Counter[int] = Counter()
    for axes in subsets(len(points[0])):
        inside = [[p[a] for a in axes] for p in points if sum(p) == sum(p[a] for a in axes)]
        normals = {tuple(r[a] for a in axes) for r in rays if all(r[a] for a in axes)}
        for normal in {tuple(x // math.gcd(*each) for x in each) for each in normals if inside}:
            order, size = facet_size(normal, inside)
            powers[order] -= (-1) ** len(axes) * size
    return MonodromyZeta(sorted(pair for pair in powers.items() if all(pair)))


def isolated_fault(points: Sequence[Ray], variables: Sequence[str]) -> str:
    """Return why polynomials with these exponents are not isolated at 0; empty where they are.

    Without a linear term, on every coordinate plane as many partial derivatives as it has
    dimensions must not vanish (Kouchnirenko).
    """
    size = len(variables)
    for axes in subsets(size) if min(map(sum, points)) > 1 else ():
        outside = [axis for axis in range(size) if axis not in axes]
        found = sum(
            any(p[i] and sum(p[a] for a in outside) == (i in outside) for p in points)
            for i in range(size)
        )
        if found < len(axes):
            names = ", ".join(variables[axis] for axis in axes)
            few = f"at least {len(axes)} of the partial derivatives must not vanish, got {found}"
            return f"along {names} {few}"
    return ""


def _quasihomogeneous(weights: Ray, order: int) -> dict[Fraction, int]:
    """Return the spectrum: the coefficients of the product of (T^w - T^N) / (1 - T^w)."""
    numbers = [0] * _check_number(order) + [1] + [0] * order * len(weights)  # from T^-N on
    for weight in weights:
        before, numbers = numbers, [0] * order
        for k in range(order, len(before)):
            numbers.append(before[k - weight] + numbers[k - weight] - before[k - order])
    return _sorted({Fraction(k, order) - 1: number for k, number in enumerate(numbers)})


def _sorted(found: Mapping[Fraction, int]) -> dict[Fraction, int]:
    return {each: found[each] for each in sorted(found) if found[each]}


def _check_number(number: int) -> int:
    if number > MOST:
        raise ValueError(f"singularity must have at most {MOST} such numbers, got more")
    return number
