"""Exponents of monomials, which parsing returns, with their checks; coefficients through SymPy."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from resgym.game.spec import MAX_DIMENSION, Point, check_coordinates
from resgym.lazy import Lazy
from resgym.texts import Names, latex, markup, monomial_text, position_pretty, shown

Terms = dict[Point, Fraction]
"""A polynomial: its coefficients, none of them 0, by exponents."""


class Exponents(list[Point]):
    """A list of exponent tuples with the names of its variables.

    It equals the plain list of the same tuples and is accepted wherever points are.

    Args:
        points: exponent tuples of one length D.
        variables: D names; by default ``x, y, z, w``, or ``x_1`` to ``x_D`` for more than four.
        generators: the polynomials that they are the exponents of: one, or several of an ideal.
            None where the coefficients are not known.

    Attributes:
        between: what stands between the monomials: a comma for an ideal.
        exponents_only: a polynomial has coefficients other than 1.
        notices: kinds of warnings about what the game ignores.
    """

    exponents_only = False
    notices: tuple[type[Warning], ...] = ()

    def __init__(
        self,
        points: Iterable[Point],
        variables: Names | None = None,
        generators: Iterable[Terms] = (),
    ) -> None:
        super().__init__(points)
        self.generators = tuple(generators)
        self.between = ", " if self.ideal else " + "
        dimension = len(self[0]) if self else 0
        usual = "xyzw"[:dimension] if dimension <= 4 else [f"x_{k + 1}" for k in range(dimension)]
        self.variables = tuple(usual if variables is None else variables)

    @property
    def ideal(self) -> bool:
        """Whether they were given as an ideal of several polynomials."""
        return len(self.generators) > 1

    @property
    def dimension(self) -> int:
        """Number of variables D."""
        return len(self.variables)

    def __str__(self) -> str:
        return self.between.join(monomial_text(point, self.variables) for point in self)

    def pretty(self) -> str:
        """Format for reading: ``x² + y³ + z⁵``; ``x^2-y^3`` gives ``x² + y³ (exponents only)``."""
        mark = " (exponents only)" if self.exponents_only else ""
        return position_pretty(self, self.variables, self.between) + mark

    def to_latex(self) -> str:
        """Return the sum of the monomials for LaTeX: ``$x^{2} + y^{3}$``."""
        return latex(position_pretty(self, self.variables, self.between))

    _repr_svg_ = Lazy("resgym.pictures.games:position_svg")

    def _repr_html_(self) -> str:
        return f"""<style>.position svg {{ max-width: 100%; height: auto }}</style>
<div class="position">{markup(self.pretty())}<br>{self._repr_svg_() or ""}</div>"""


def check_points(points: Any) -> list[Point]:
    """Check exponent tuples from lists, arrays or tensors.

    Args:
        points: a sequence of rows, each of 2 to 10 whole numbers from 0 to 2^59.

    Raises:
        TypeError: the points are not a sequence of rows, or an entry is not a whole number.
        ValueError: there are no points, rows differ in length, or an entry is out of range.
    """
    rows = list[Point]()
    for index, row in enumerate(_entries(points, "points", "a list of exponent lists")):
        where = f"points[{index}]"
        values = _entries(row, where, "a list of exponents")
        if rows and len(values) != len(rows[0]):
            raise ValueError(
                f"{where} must have {len(rows[0])} exponents like points[0], got {len(values)}"
            )
        rows.append(check_coordinates(values, where))
    if not rows:
        raise ValueError("points must have at least one exponent list, got an empty list")
    dimension = len(rows[0])
    if not 2 <= dimension <= MAX_DIMENSION:
        raise ValueError(f"points must have 2 to {MAX_DIMENSION} variables, got {dimension}")
    return rows


def _entries(values: Any, name: str, allowed: str) -> list[Any]:
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, (str, bytes, dict)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be {allowed}, got {shown(values)}")
    return list(values)


def sympy_poly(terms: Terms, variables: Names) -> Any:
    """Return a polynomial as a SymPy ``Poly``."""
    import sympy

    return sympy.Poly(dict(terms), *sympy.symbols(list(variables)))


def factored(poly: Any) -> str:
    """Return the text of a ``Poly`` as a product of powers, such as ``(x^2 + y^3)^2``.

    To find all factors takes minutes if there are exponents of some hundreds; above a degree of
    2,000 this takes as long.
    """
    import sympy

    found = poly.as_expr()
    return str(found if poly.total_degree() > 2000 else sympy.sqf(found)).replace("**", "^")


def is_degenerate(terms: Terms) -> bool:
    """Return whether a polynomial and its derivatives have a common zero without coordinate 0.

    Args:
        terms: at least two coefficients by exponents. For a face of a Newton polyhedron take the
            exponents in a basis of its lattice, so that there are as many variables as the face has
            dimensions.
    """
    import sympy

    *u, inverse = sympy.symbols(f"u:{len(next(iter(terms))) + 1}")
    poly = sympy.Poly(dict(terms), *u).terms_gcd()[1]
    basis = sympy.groebner(
        [poly, *map(poly.diff, u), sympy.prod(u) * inverse - 1], *u, inverse, order="grevlex"
    )
    return basis.exprs != [1]


def is_isolated(poly: Any) -> bool:
    """Return whether a ``Poly`` has no singular points near 0 other than 0 itself.

    That is so if and only if, for each variable x, the Jacobian ideal saturated by x has an element
    that does not vanish at 0: then no singular points with x != 0 come arbitrarily close to 0.
    """
    import sympy

    inverse = sympy.Dummy()
    for x in poly.gens:
        # The order eliminates the inverse; lexicographic in all variables often takes for ever.
        basis = sympy.groebner(
            [poly, *map(poly.diff, poly.gens), 1 - inverse * x],
            inverse,
            *poly.gens,
            order=lambda powers: (powers[0], sum(powers), powers),
        )
        at_0 = [each.coeff_monomial(1) for each in basis.polys if each.degree(inverse) < 1]
        if not any(at_0):
            return False
    return True
