"""Trees as scripts for computer algebra programs."""

from __future__ import annotations

import json
import re
from functools import partial
from textwrap import indent
from typing import Any

from resgym.game.exact import minimal
from resgym.geometry.fan import chart_rays, compact_cells, degenerate_faces, least, tree_fan
from resgym.pictures.trees import totals_text
from resgym.polynomials.monomials import Exponents, Terms
from resgym.texts import monomial_text, shown

# By the ending of files: the mark of a comment, the brackets of a list, the script, and its line
# for <fan> if the cones glue, and if not. Names have two letters or more, since variables have one.
_SCRIPTS = {
    "sing": (
        "// ",
        "()",
        """\
LIB "sing.lib"; LIB "gmssing.lib"; LIB "reszeta.lib";
ring space = 0, (<names>), ds;
poly germ = <germ>;
int milnorNumber = milnor(germ);
"Milnor number (-1: not isolated):", milnorNumber;
if (milnorNumber > 0) { "spectral numbers minus 1, multiplicities:"; spectrum(germ); }
if (nvars(space) == 3) {
  ring whole = 0, (<names>), dp;
  poly germ = <germ>;
  "topological zeta function at 0:"; zetaDL(resolve(ideal(germ), 0), 1, "local");
}
""",
        "",
        "",
    ),
    "m2": (
        "-- ",
        "{}",
        """\
needsPackage "NormalToricVarieties"
space = QQ[<names>]
germ = <germ>
-- the rays of the cones where branches end, and for each its multiplicity and log discrepancy
fanRays = <rays>
fanCones = <cones>
fanOrders = <orders>
<fan>
-- every chart: its number, the chart before it (0: none), its rays
charts = <charts>
substitution = rows -> map(space, space,
  apply(transpose rows, powers -> product(gens space, powers, (v, e) -> v^e)))
transforms = apply(charts, chart -> (chart#0, (substitution chart#2) germ))
print netList transforms
""",
        "toric = normalToricVariety(fanRays, fanCones)",
        "-- the cones do not glue to a fan",
    ),
    "sage": (
        "# ",
        "[]",
        """\
space = PolynomialRing(QQ, "<names>")
germ = space("<germ>")
# the rays of the cones where branches end, and for each its multiplicity and log discrepancy
rays = <rays>
cones = <cones>
orders = <orders>
<fan>
""",
        "fan = Fan(cones, rays)",
        "cones = [Cone([rays[i] for i in cone]) for cone in cones]",
    ),
    "jl": (
        "# ",
        "[]",
        """\
using Oscar
space, (<names>) = polynomial_ring(QQ, <quoted>)
germ = <germ>
# the rays of the cones where branches end, and for each its multiplicity and log discrepancy
fan_rays = <rays>
fan_cones = [cone .+ 1 for cone in <cones>]
fan_orders = <orders>
<fan>
""",
        "variety = normal_toric_variety(incidence_matrix(fan_cones), fan_rays; non_redundant=true)",
        "cones = [positive_hull(fan_rays[cone]) for cone in fan_cones]",
    ),
    "pl": (
        "# ",
        "[]",
        """\
use application "fan";
my $germ = new Polynomial<Rational, Int>(
  new Vector<Rational>(<coefficients>), new Matrix<Int>(<points>));
# the rays of the cones where branches end, and for each its multiplicity and log discrepancy
my $rays = <rays>;
my $cones = <cones>;
my $orders = <orders>;
<fan>
""",
        "my $fan = new PolyhedralFan(INPUT_RAYS => $rays, INPUT_CONES => $cones);",
        "my @cones = map { new Cone(INPUT_RAYS => [@{$rays}[@$_]]) } @$cones;",
    ),
}


def tree_to_script(tree: Any, ending: str) -> str:
    """Return a script for another program, with the polynomial, rays and cones of a tree.

    Args:
        tree: a tree of rule ``basic`` that follows all answers; it may be cut.
        ending: that of the program's files: ``sing`` (Singular), ``m2`` (Macaulay2), ``sage``
            (SageMath), ``jl`` (OSCAR) or ``pl`` (polymake).

    Raises:
        ValueError: the tree is of another kind, or there is no such ending.
    """
    if ending not in _SCRIPTS:
        raise ValueError(f"ending must be one of {', '.join(_SCRIPTS)}, got {shown(ending)}")
    if tree.spec.rule != "basic":
        raise ValueError(f"tree must be of rule basic, got {tree.spec.rule}")
    comment, brackets, script, glued, loose = _SCRIPTS[ending]
    fan, names = tree_fan(tree), tree.variables
    if not re.fullmatch("([u-z],)+|([u-z]_[0-9]+,)+", "".join(f"{name}," for name in names)):
        names = tuple(f"x_{axis + 1}" for axis in range(len(names)))  # others may be taken there
    germ, checked = _generic_terms(tree)
    lists = {
        "coefficients": [*germ.values()],
        "points": [*germ],
        "rays": fan.rays,
        "cones": fan.cones,
        "orders": [(least(ray, germ), sum(ray)) for ray in fan.rays],
        "charts": [
            (chart.number, chart.parent or 0, rays)
            for chart, rays in zip(tree, chart_rays(tree), strict=True)
        ],
        "quoted": names,
    }
    words = {
        name: json.dumps(value).translate(str.maketrans("[]", brackets))
        for name, value in lists.items()
    }
    words["names"] = ", ".join(names)
    words["germ"] = " + ".join(f"{n}*{monomial_text(p, names)}" for p, n in germ.items())[2:]
    words["fan"] = glued if fan.glues else loose
    kind = "generic coefficients" if checked else "coefficients that may not be generic"
    if names != tree.variables:
        kind += f"; the variables are {json.dumps(tree.variables)}"
    about = indent(f"{tree.title}\n{totals_text(tree)}\n{kind}\n", comment)
    return about + re.sub("<([a-z]+)>", lambda found: words[found[1]], script)


def _generic_terms(tree: Any) -> tuple[Terms, bool]:
    """Return coefficients 1 and primes, nondegenerate on all compact faces that a tree shows.

    Also return whether it shows all of them.
    """
    from sympy import primerange

    points = minimal(tree.start)
    resolved = all(chart.ending in (None, "resolved") for chart in tree)
    cells, primes = [*compact_cells(tree)] if resolved else [], [*primerange(200_000)]
    for start in range(len(primes) - len(points)):
        terms = dict(zip(points, [1, *primes[start:]], strict=False))
        if not degenerate_faces(cells, Exponents(points, tree.variables, [terms])):
            break
    return terms, resolved


def tree_to_form(tree: Any, ending: str, note: str = "") -> str:
    """Return the text of a file that shows a tree, in the form that its ending asks for.

    Args:
        tree: a tree.
        ending: ``html``, ``svg``, ``tex``, ``dot``, ``txt``, ``json``, or one of `tree_to_script`.
        note: HTML above the tree of a page.
    """
    forms = {
        "html": partial(tree.to_html, note=note),
        "svg": tree.to_svg,
        "tex": tree.to_latex,
        "dot": tree.to_dot,
        "txt": tree.to_text,
        "json": partial(tree.to_json, indent=2),
    }
    return forms.get(ending, partial(tree.to_script, ending))()
