"""Invariants of singularities, against closed forms, other hosts and each other."""

import json
import math
import random
import re
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest

import resgym
from resgym.app.answers import answer
from resgym.app.questions import read_question
from resgym.game.exact import prune
from resgym.geometry.fan import volume
from resgym.geometry.invariants import RationalFunction
from tests.resgym.commands import run

NAMES = [
    name for kind in ("simple", "exceptional", "bimodal") for name in resgym.singularity_names(kind)
]


def invariants(start, host="spivakovsky"):
    """Those of an ideal, or of a polynomial with generic coefficients."""
    points = resgym.parse(start)
    points = points if points.ideal else [*points]
    again = host != "zeillinger"
    return resgym.resolution_tree(points, host, max_depth=1000, reposition=again).invariants()


def random_positions(number, isolated, seed=0):
    """Random monomials in two or three variables."""
    generator = random.Random(seed)
    while number:
        dimension = generator.choice((2, 3))
        points = {tuple(generator.randint(0, 6) for _ in range(dimension)) for _ in range(5)}
        if all(map(any, points)) and invariants(list(points)).isolated == isolated:
            number -= 1
            yield list(points)


def test_e8():
    found = invariants("E8")
    assert str(found.zeta) == "(22s + 31)/((s + 1)(30s + 31))"
    assert found.zeta.latex() == r"\frac{22 s + 31}{\left(s + 1\right) \left(30 s + 31\right)}"
    assert found.zeta(Fraction(1, 2)) == Fraction(42 * 2, 3 * 46)
    assert found.poles == ((-1, 1, ()), (Fraction(-31, 30), 1, ((15, 10, 6),)))
    monodromy = "(1 - t^2)(1 - t^3)(1 - t^5)(1 - t^30)/((1 - t^6)(1 - t^10)(1 - t^15))"
    assert str(found.monodromy) == monodromy
    assert str(invariants("x^3+y^3").monodromy) == "1/(1 - t^3)"
    assert (found.euler_number, found.milnor_number, found.isolated) == (9, 8, True)
    units = [k for k in range(30) if math.gcd(k, 30) == 1]
    assert found.eigenvalues == {Fraction(k, 30): 1 for k in units}
    assert found.spectrum == {1 + Fraction(k, 30): 1 for k in units}
    assert (found.log_canonical_threshold, found.jumping_numbers) == (1, ())


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_a_name_is_the_milnor_number(name):
    found = invariants(name)
    assert found.milnor_number == int(re.search(r"\d+", name)[0])
    assert_consistent(found)


@pytest.mark.parametrize("number", [7, pytest.param(250, marks=pytest.mark.long)])
def test_numbers_of_isolated_singularities(number):
    for points in random_positions(number, isolated=True, seed=number):
        assert_consistent(invariants(points))


def assert_consistent(found):
    """What holds for every isolated singularity."""
    size = len(found.variables)
    assert sum(found.spectrum.values()) == sum(found.eigenvalues.values()) == found.milnor_number
    assert found.spectrum == {size - a: n for a, n in found.spectrum.items()}
    angles = Counter()
    for a, n in found.spectrum.items():
        angles[a % 1] += n
    assert angles == found.eigenvalues
    assert min([*found.spectrum, Fraction(1)]) == found.log_canonical_threshold
    assert {a for a in found.spectrum if a < 1} == set(found.jumping_numbers)
    assert all(-pole.value % 1 in {0, *found.eigenvalues} for pole in found.poles)
    assert found.zeta(0) == 1


def assert_the_host_does_not_matter(start):
    one, other = (invariants(start, host) for host in ("spivakovsky", "zeillinger"))
    for name in ("zeta", "candidates", "monodromy", "facets", "log_canonical_threshold"):
        assert getattr(one, name) == getattr(other, name)


SOME = {"A4", "D5", "E7", "Q11", "S12", "Z18", "U16"}
MORE = [name if name in SOME else pytest.param(name, marks=pytest.mark.long) for name in NAMES]


@pytest.mark.parametrize("name", [*MORE, "T3,4,5"])
def test_the_host_does_not_matter(name):
    assert_the_host_does_not_matter(name)
    assert resgym.solve(name).tree.invariants().zeta == invariants(name).zeta


@pytest.mark.parametrize("number", [8, pytest.param(100, marks=pytest.mark.long)])
def test_the_host_does_not_matter_where_singularities_are_not_isolated(number):
    for points in random_positions(number, isolated=False, seed=number):
        assert_the_host_does_not_matter(points)
    # Charts of this tree do not glue, and the answer stays.
    start = resgym.random_family("random(points=6,max=8,dim=3)", seed=3)
    assert not resgym.resolution_tree(start).fan().glues
    assert_the_host_does_not_matter(start)


@pytest.mark.parametrize(
    ("start", "zeta"),
    [
        *(
            (f"x^{b}+y^{a}", lambda s, a=a, b=b: (a + b - 1 + 1 / (s + 1)) / (a * b * s + a + b))
            for a, b in ((2, 3), (2, 5), (3, 4), (3, 7), (5, 7))
        ),
        *(
            (
                f"x^{m}+y^{m}+z^{m}+x*y*z^{m - 2}",
                lambda s, chi=m * (3 - m), m=m: (3 - chi + chi / (s + 1)) / (m * s + 3),
            )
            for m in (2, 3, 4, 5)
        ),
        ("x^2*y^3+y^5", lambda s: (-1 + 1 / (3 * s + 1) + 2 / (s + 1)) / (5 * s + 2)),
        ("x^3*y^2", lambda s: 1 / ((3 * s + 1) * (2 * s + 1))),
        ("x+y^7", lambda s: 1 / (s + 1)),
    ],
)
def test_zeta_functions_in_closed_form(start, zeta):
    found = invariants(start).zeta
    for s in (Fraction(0), Fraction(1), Fraction(7, 3), Fraction(100)):
        assert found(s) == zeta(s)


@pytest.mark.parametrize(
    "powers", [(2, 5), (4, 6), (3, 3, 4), (2, 4, 6), (2, 2, 3, 5), (3, 3, 3, 3)]
)
def test_spectra_of_sums_of_powers(powers):
    parts = product(*([Fraction(k, power) for k in range(1, power)] for power in powers))
    spectrum = Counter(map(sum, parts))
    found = invariants(f"bp({','.join(map(str, powers))})")
    assert found.spectrum == spectrum
    assert found.jumping_numbers == tuple(sorted(a for a in spectrum if a < 1))


def test_multiplier_ideals_of_a_monomial_times_a_curve():
    # The ideal (x^4 y^2, x^2 y^5), whose heights are 0 < (k/4 or l/2 or a third of the facet).
    found = invariants("x^4*y^2+x^2*y^5")
    heights = {
        (i - 1, j - 1): min(Fraction(i, 2), Fraction(j, 2), Fraction(3 * i + 2 * j, 16))
        for i, j in product(range(1, 9), repeat=2)
    }
    jumps = sorted({a for a in heights.values() if a < 1})
    assert found.jumping_numbers == tuple(jumps)
    for c in (0, *jumps, Fraction(99, 100)):
        ideal = [p for p, height in heights.items() if height > c]
        assert found.multiplier_ideal(c) == tuple(sorted(prune(ideal)))


@pytest.mark.parametrize(
    ("start", "c", "ideal"),
    [
        ("x^9+x^2*y^2+y^5", "17/18", {(5, 0), (1, 1), (0, 3)}),
        ("x^2*y^3", "2/3", {(1, 2)}),
        ("x^3*y^5*z+x*z^3", "5/6", {(0, 0, 2), (1, 1, 1), (2, 3, 0)}),
        # Past one, by hand.
        ("x, y", "3/2", {(0, 0)}),
        ("x, y", 2, {(0, 1), (1, 0)}),
        ("x, y", 3, {(0, 2), (1, 1), (2, 0)}),
    ],
)
def test_multiplier_ideals_of_macaulay2(start, c, ideal):
    assert set(invariants(start).multiplier_ideal(c)) == ideal


ALL = ["milnor_number", "eigenvalues", "spectrum"]


@pytest.mark.parametrize(
    ("start", "refused", "message"),
    [
        *(
            (start, ALL, f"singularity must be isolated: along {fault}")
            for start, fault in (
                ("x^2*y+z^3", "y at least 1 of the .*, got 0"),
                ("x^3*y^2", "x at least 1 of the .*, got 0"),
                ("x*y*z+x^2*y", "y at least 1 of the .*, got 0"),
                ("x^2+y^2*z+z^2*y+w*x*y", "w at least 1 of the .*, got 0"),
                ("x*y*z+x*y*w+x^5+y^5+z^5*x+w^5*x", "z, w at least 2 of the .*, got 1"),
            )
        ),
        # What the charts do not give, and what would be too much to count.
        ("x^2*y^2+x^5+y^5+z^2+w^2", ALL[2:], "spectrum in 4 variables must be that of a poly.*"),
        (f"x^{10**9}+y^{10**9}", ALL[1:], "exponents, and c, must lead to at most 1000000.*"),
    ],
)
def test_what_a_singularity_does_not_have_is_refused(start, refused, message):
    found = invariants(start)
    for name in refused:
        with pytest.raises(ValueError, match=f"^{message}$"):
            getattr(found, name)
    if found.isolated:
        assert found.milnor_number in (11, (10**9 - 1) ** 2)
    else:
        assert all(re.search(rf"{message}\)$", found.to_dict()[name]) for name in ALL)
        assert found.zeta(0) == 1


def test_coefficients_are_checked():
    sympy = pytest.importorskip("sympy", reason="needs the extra math")
    x, y, z = sympy.symbols("x y z")
    tree = resgym.resolution_tree([[2, 0, 0], [1, 1, 0], [0, 2, 0], [0, 0, 3]])
    found = tree.invariants(x**2 + x * y + y**2 - z**3 / 2 + z**4)
    assert (found.generic, found.zeta) == (False, tree.invariants().zeta)
    assert found.to_dict()["coefficients"] == "given"
    others = "rational coefficients and the monomials of the tree, got "
    for wrong, message in (
        ((x + y) ** 2 + z**3, "nondegenerate, got (x + y)^2 on a compact face"),
        (x**2 + y**2 + z**3, others),
        ("x^2, x*y, y^2, z^3", others),
    ):
        with pytest.raises(ValueError, match=f"^polynomial must (be|have) {re.escape(message)}"):
            tree.invariants(wrong)
    with pytest.raises(ValueError, match=r"^points must be rational, .* got .*sqrt\(2\)"):
        tree.invariants(x**2 + sympy.sqrt(2) * x * y + y**2 + z**3)


TYPED = [  # by Singular: Milnor numbers, -1 where it is not isolated
    ("x7+y7+(x-y)^2*x2y2", "(x^2*y - x*y^2)^2", "at most 1/3, its Milnor number at least 27"),
    ("(x^2+y^3)^2", "(x^2 + y^3)^2", "at most 5/12, its Milnor number at least 15"),
    ("(y^2-x^3)^2-x^7+z^2", "(x^3 - y^2)^2", "at most 11/12, its Milnor number at least 15"),
    ("xyz+xyw+z^5*x+w^5*x", "w^5*x + w*x*y + x*y*z + x*z^5", "at most 1, and it is not isolated"),
]


@pytest.mark.filterwarnings("ignore::UserWarning:resgym")
@pytest.mark.parametrize(("start", "face", "holds"), TYPED)
def test_what_was_typed_decides_everywhere_alike(start, face, holds, capsys):
    """In Python, on the command line and on the page."""
    message = (
        rf"polynomial must be nondegenerate, got {re.escape(face)}.* on a compact face; .*{holds}"
    )
    with pytest.raises(ValueError, match=message):
        resgym.resolution_tree(start).invariants()
    code, out, err = run(capsys, "tree", start, "--invariants")
    assert (code, out) == (2, "")
    assert re.search(message, err)
    with pytest.raises(ValueError, match=message):
        answer("tree", read_question({"start": start, "form": "invariants"}), None)
    for grow in (resgym.resolution_tree, resgym.solve):
        with pytest.raises(ValueError, match=r"^stop is for nondegenerate polynomials, got "):
            grow(start, stop="smooth")
    assert f"nondegenerate: no: {face}" in run(capsys, "examine", start)[1]


@pytest.mark.parametrize(
    ("start", "threshold", "jumps"),
    [
        ("x^2, y^3, z^5", Fraction(31, 30), {Fraction(31, 30), Fraction(37, 30), Fraction(41, 30)}),
        ("ideal(x, y, z)", Fraction(3), {Fraction(3)}),
        ("[x^2, x*y^3]", Fraction(2, 3), {Fraction(5, 6), Fraction(1), Fraction(3, 2)}),
    ],
)
def test_ideals(start, threshold, jumps, capsys):
    """Howald's theorem by hand: the heights of (1, 1, 1) and its neighbours."""
    found = resgym.resolution_tree(start).invariants()
    assert found.log_canonical_threshold == threshold
    assert jumps <= set(found.jumping_numbers)
    assert max(found.jumping_numbers) <= len(found.variables)
    for c in found.jumping_numbers:
        assert found.multiplier_ideal(c) != found.multiplier_ideal(c - Fraction(1, 10**6))
    assert f"threshold: {threshold}" in run(capsys, "tree", start, "--invariants")[1]


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_volumes_of_lattice_polytopes(dimension):
    generator = random.Random(dimension)
    corners = [*product((0, 3), repeat=dimension)]
    inside = [tuple(generator.randint(0, 3) for _ in range(dimension)) for _ in range(9)]
    assert volume(corners + inside) == math.factorial(dimension) * 3**dimension
    assert volume([(*point, sum(point)) for point in corners]) == 0


def test_rational_functions():
    fifth = Fraction(-1, 5)
    one = RationalFunction.interpolated(
        lambda s: Fraction(s + 3, 10 * s + 2), {fifth: 1, Fraction(-1): 2, Fraction(-7): 0}
    )
    assert (str(one), one.poles) == ("(s + 3)/(10s + 2)", {fifth: 1})
    assert one.latex() == r"\frac{s + 3}{10 s + 2}"
    assert str(RationalFunction.interpolated(lambda s: Fraction(5), {Fraction(-2): 1})) == "5"
    two = RationalFunction.interpolated(
        lambda s: Fraction(-(s**12) + s, (s + 1) ** 12), {Fraction(-1): 12, Fraction(-1, 2): 1}
    )
    assert str(two) == "(-s^12 + s)/(s + 1)^12"
    assert two.latex() == r"\frac{- s^{12} + s}{\left(s + 1\right)^{12}}"
    assert two.poles == {-1: 12}
    with pytest.raises(ZeroDivisionError):
        two(-1)


def test_the_command_shows_invariants(capsys, tmp_path):
    found = resgym.resolution_tree("E8").invariants()
    out = run(capsys, "tree", "E8", "--invariants")[1]
    assert out.startswith("coefficients: g")
    assert "\nlog canonical threshold: 1\n" in out
    assert out.startswith(f"{found}\n\nhost zeillinger: x² + y³ + z⁵\n")
    code, out, _ = run(capsys, "tree", "E8", "--invariants", "--json")
    assert (code, json.loads(out)) == (0, json.loads(json.dumps(found.to_dict())))
    assert json.loads(out)["candidates"]["-31/30"] == {"order": 1, "rays": [[15, 10, 6]]}
    page = tmp_path / "e8.html"
    assert run(capsys, "tree", "E8", "--invariants", "--out", str(page))[0] == 0
    assert f"</h1>{found._repr_html_()}<form>" in page.read_text(encoding="utf-8")
    assert found.surface_graph().to_svg() in found._repr_html_()
    code, _, err = run(capsys, "tree", "E8", "--invariants", "--max-depth", "2")
    assert (code, err.count("\n")) == (2, 1)
