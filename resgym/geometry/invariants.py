"""Invariants of a singularity, computed exactly from the leaves of one of its resolution trees.

They hold for polynomials that are nondegenerate on the compact faces of their Newton polyhedron, as
those with generic coefficients are. ``docs/invariants.md`` gives the theorems.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

from resgym.game.exact import minimal
from resgym.geometry.fan import (
    Cell,
    Face,
    Ray,
    compact_cells,
    degenerate_faces,
    dot,
    facet_order,
    log_canonical_threshold,
)
from resgym.geometry.ideals import MonomialIdeal, check_number
from resgym.geometry.smooth import isolated_fault
from resgym.geometry.surface import SurfaceGraph, surface_graph
from resgym.polynomials.parse import read
from resgym.texts import position_pretty


class RationalFunction(NamedTuple):
    """A rational function in lowest terms; equal functions compare equal.

    Attributes:
        numerator: a SymPy ``Poly`` in s; the denominator is the product of (s - pole)^order.
        poles: the poles with their orders.
    """

    numerator: Any
    poles: dict[Fraction, int]

    @classmethod
    def interpolated(cls, value: Callable[[int], Fraction], poles: dict[Fraction, int]) -> Self:
        """Return the function with given values at 0, 1, 2, ...

        Its poles must be among ``poles``, with at most these orders. The sum of the orders must be
        no smaller than the degree of the numerator.
        """
        from sympy import QQ, Poly, Symbol

        s = Poly(Symbol("s"), domain=QQ)
        polynomial, basis = 0 * s, s**0
        for k in range(sum(poles.values()) + 1):  # Newton's form
            rest = value(k) * _product(poles, k) - polynomial(k)
            polynomial += basis * (rest / math.factorial(k))
            basis *= s - k
        left = dict(poles)
        for at in poles:
            while left[at] and not polynomial(at):
                polynomial = polynomial.quo(s - at)
                left[at] -= 1
        return cls(polynomial, {at: order for at, order in left.items() if order})

    def __call__(self, s: Fraction | int) -> Fraction:
        """Return the exact value at s; a pole is a ZeroDivisionError."""
        return Fraction(str(self.numerator(s))) / _product(self.poles, s)

    def _expression(self) -> Any:
        whole = self.numerator.as_expr() / _product(self.poles, self.numerator.gen)
        above, below = whole.factor().as_numer_denom()
        return above.expand() / below

    def __str__(self) -> str:
        return _text(self._expression())

    def latex(self) -> str:
        """Return LaTeX source without dollars."""
        from sympy import latex

        return str(latex(self._expression()))

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"


class MonodromyZeta(tuple[tuple[int, int], ...]):
    """The product of (1 - t^N)^e over pairs (N, e)."""

    def __str__(self) -> str:
        from sympy import Symbol

        t = Symbol("t")
        return _text(math.prod((1 - t**n) ** e for n, e in self))


def _product(poles: Mapping[Fraction, int], s: Fraction | int) -> Fraction:
    return math.prod(((s - at) ** order for at, order in poles.items()), start=Fraction(1))


def _text(value: Any) -> str:
    """Format an expression of SymPy such as ``(30s + 31)/(s + 1)^2``."""
    quotient = re.sub(r"^(.+)\*\*\(-(.+)\)$", r"1/\1**\2", str(value))
    return quotient.replace("**", "^").replace("*", "")


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
class Invariants(MonomialIdeal):
    """Invariants of a singularity at the origin, see `tree_invariants`.

    Attributes:
        generic: whether the coefficients are generic; else they were given and are nondegenerate.
        zeta: the local topological zeta function (Denef and Loeser).
        candidates: its candidate poles: -1, and those of the facets of the Newton polyhedron.
        monodromy: the zeta function of the monodromy (Varchenko): the alternating product of
            det(1 - t T) on the cohomology of the Milnor fibre, degree 0 first.
        faces: the compact faces, each with a cell of weights that are least there.
        rays: the rays of the tree.
    """

    generic: bool
    zeta: RationalFunction
    candidates: tuple[Pole, ...]
    monodromy: MonodromyZeta
    faces: dict[Face, Cell]
    rays: tuple[Ray, ...]

    most = 1
    shown: ClassVar[Mapping[str, str]] = {
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

    @property
    def about(self) -> tuple[str, str]:
        """See `MonomialIdeal`."""
        return "coefficients", "generic" if self.generic else "given"

    @property
    def log_canonical_threshold(self) -> Fraction:
        """That of the polynomial, at most 1."""
        return min(super().log_canonical_threshold, Fraction(1))

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
        """(-1)^(D - 1), the sign of the middle cohomology; ValueError unless isolated."""
        fault = isolated_fault(self.points, self.variables)
        if fault:
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
        check_number(sum(n for n, _ in self.monodromy))
        found = Counter({Fraction(0): -sign})
        for n, e in self.monodromy:
            for k in range(n):
                found[Fraction(k, n)] += sign * e
        return _sorted(found)

    @cached_property
    def spectrum(self) -> dict[Fraction, int]:
        """The spectral numbers, between 0 and D, with their multiplicities.

        Raises:
            ValueError: the singularity is not isolated; or D > 3, and no face makes the polynomial
                semi-quasihomogeneous; or there are over a million numbers.
        """
        size = len(self.variables)
        if not check_number(self.milnor_number):
            return {}
        if size > 3:
            for face, cell in self.faces.items():
                if not isolated_fault(face, self.variables):
                    return _quasihomogeneous(cell.weights, dot(cell.weights, face[0]))
            raise ValueError(
                f"spectrum in {size} variables must be that of a polynomial with an isolated "
                "singularity on one face (semi-quasihomogeneous), got none"
            )
        below = self._heights()
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
        name = position_pretty(self.points, self.variables)
        return surface_graph(self.points, self.faces.values(), self.rays, minimal, name)

    def _repr_html_(self) -> str:
        surface = len(self.variables) == 3 and self.isolated
        return super()._repr_html_() + (self.surface_graph().to_svg() if surface else "")


def tree_invariants(tree: Any, polynomial: Any = None) -> Invariants | MonomialIdeal:
    """Return the invariants at the origin of the polynomial that a tree is of.

    They are those of the polynomial as it was given to the tree, which must be nondegenerate. Where
    its coefficients are not known, they are those for generic coefficients. A tree of an ideal,
    given by several polynomials, has the invariants of the ideal of all their monomials.

    Args:
        tree: a tree of rule ``basic`` that is resolved in every chart. The host does not matter.
        polynomial: another one with rational coefficients and the same minimal monomials, anything
            that `resgym.parse` reads.

    Raises:
        ValueError: the tree is of another kind; or the polynomial has a constant term, other
            monomials than the tree, or is degenerate on a face; the message shows what still holds.
    """
    if tree.spec.rule != "basic":
        raise ValueError(f"tree must be of rule basic, got {tree.spec.rule}")
    if isinstance(log_canonical_threshold(tree), float):
        raise ValueError("polynomial must be 0 at the origin, got one with a constant term")
    points, size = minimal(tree.start), len(tree.variables)
    start = tree.start if polynomial is None else read(polynomial, tree.variables)
    if polynomial is not None and (len(start.generators) != 1 or {*minimal(start)} != {*points}):
        raise ValueError(
            "polynomial must have rational coefficients and the monomials of the tree, got "
            f"{polynomial}"
        )
    rays = sorted(tree.fan().rays)
    facets = {ray: order for ray in rays if (order := facet_order(ray, points))}
    if start.ideal:
        return MonomialIdeal(points, tree.variables, facets)
    behind: dict[Fraction, list[Ray]] = {Fraction(-1): []}
    for ray, order in facets.items():
        behind.setdefault(Fraction(-sum(ray), order), []).append(ray)
    faces: dict[Face, Cell] = {}
    terms: Counter[tuple[bool, tuple[tuple[int, int], ...]]] = Counter()
    for cell in compact_cells(tree):
        above = size - len(cell.rays)
        faces.setdefault(cell.face, cell)
        factors = [(dot(ray, cell.face[0]), sum(ray)) for ray in cell.rays]
        terms[above > 0, (*sorted(factors), *[(1, 1)] * (above > 0))] += (-1) ** above * cell.volume

    def value(s: int) -> Fraction:
        parts = (
            Fraction(number * s**above, math.prod(n * s + nu for n, nu in factors))
            for (above, factors), number in terms.items()
        )
        return sum(parts, Fraction(0))

    orders = {at: min(len(some) + (at == -1), size) for at, some in behind.items()}
    zeta = RationalFunction.interpolated(value, orders)
    poles = sorted(behind.items(), reverse=True)
    found = Invariants(
        points,
        tree.variables,
        facets,
        not start.generators,
        zeta,
        tuple(Pole(at, zeta.poles.get(at, 0), tuple(some)) for at, some in poles),
        _monodromy(faces.values()),
        faces,
        tuple(rays),
    )
    if bad := degenerate_faces(faces.values(), start):
        milnor = f"its Milnor number at least {found.milnor_number}" if found.isolated else ""
        raise ValueError(
            f"polynomial must be nondegenerate, got {bad[0]} on a compact face; its log canonical "
            f"threshold is at most {found.log_canonical_threshold}, "
            f"{milnor or 'and it is not isolated'}"
        )
    return found


def tree_surface_graph(tree: Any, minimal: bool = True) -> SurfaceGraph:
    """Return the resolution graph of a surface, see `Invariants.surface_graph`."""
    found = tree_invariants(tree)
    if not isinstance(found, Invariants):
        raise ValueError("surface_graph is for one polynomial, got an ideal")
    return found.surface_graph(minimal)


def _monodromy(cells: Iterable[Cell]) -> MonodromyZeta:
    """Return Varchenko's product over the facets in all coordinate planes.

    They are the compact faces with one dimension less than the smallest plane that has them.
    """
    powers: Counter[int] = Counter()
    for cell in cells:
        plane = [w for a, w in enumerate(cell.weights) if any(p[a] for p in cell.face)]
        if len(plane) == 1 + len(cell.local[0]):
            order = dot(cell.weights, cell.face[0]) // math.gcd(*plane)
            powers[order] -= (-1) ** len(plane) * cell.volume
    return MonodromyZeta(sorted(pair for pair in powers.items() if all(pair)))


def _quasihomogeneous(weights: Ray, order: int) -> dict[Fraction, int]:
    """Return the spectrum: the coefficients of the product of (T^w - T^N) / (1 - T^w)."""
    numbers = [0] * check_number(order) + [1] + [0] * order * len(weights)  # from T^-N on
    for weight in weights:
        before, numbers = numbers, [0] * order
        for k in range(order, len(before)):
            numbers.append(before[k - weight] + numbers[k - weight] - before[k - order])
    return _sorted({Fraction(k, order) - 1: number for k, number in enumerate(numbers)})


def _sorted(found: Mapping[Fraction, int]) -> dict[Fraction, int]:
    return {each: found[each] for each in sorted(found) if found[each]}
