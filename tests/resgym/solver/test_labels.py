"""Labels of the compiled search: digests of positions, tables, hashes and limits."""

import random

import pytest

from resgym.game.exact import canonical, prune
from resgym.solver import kernels
from resgym.solver.labels import Labeller, digests
from resgym.solver.search import Search
from tests.resgym.solver.positions import batch, drawn

pytest.importorskip("numba")


@pytest.mark.parametrize("dimension", [2, 3, 4, 5])
def test_digests_are_of_the_canonical_forms_of_the_solver(dimension):
    draw = random.Random(dimension)
    # Small values, which many axes share, and values that do not fit into one word together.
    positions = drawn(150, 2, dimension, 5, 2) + drawn(50, 3, dimension, 5, 10**12)
    found = digests(*batch(positions, 6))
    forms = [canonical(position) for position in positions]
    assert [canonical(form) for form in forms] == forms
    assert (digests(*batch(forms, 6)) == found).all()
    changed = []
    for position in positions:
        axes = draw.sample(range(dimension), dimension)
        shift = [draw.randint(0, 9) for _ in axes]
        changed.append([tuple(3 * point[j] + shift[j] for j in axes) for point in position])
        assert canonical(prune(changed[-1])) == canonical(position)
    assert (digests(*batch(changed, 6)) == found).all()
    for half in found.T.tolist():
        # One digest a form, and one form a digest.
        assert len(set(half)) == len(set(forms)) == len(set(zip(half, forms, strict=True)))


def test_equal_hashes_do_no_harm(monkeypatch):
    """With one hash for every key only the comparison of points tells positions apart."""
    positions = drawn(40, 6, 2, 4, 5)
    expected, _, _ = Labeller(2, 4).costs(*batch(positions, 4))
    monkeypatch.setattr(kernels, "mix", lambda *_: 7)
    search = Search("depth", 2, 4)
    for place, value in zip(positions, expected.min(1), strict=True):
        search.allow(10**6)
        assert search.value(search.numbers(place)[0]) == value


def test_huge_coordinates_are_told():
    points, count = batch([((2**57, 0), (0, 1)), ((2, 0), (0, 1))], 2)
    costs, _, solved = Labeller(2, 2).costs(points, count)
    assert solved.tolist() == [False, True]
    assert costs[1].tolist() == [2]


def test_a_common_factor_of_large_coordinates_is_divided_out():
    points, count = batch(drawn(20, 4, 3, 4, 9), 4)
    small = Labeller(3, 4).costs(points, count)
    large = Labeller(3, 4).costs(points << 30, count)
    assert small[2].all()
    assert all((one == other).all() for one, other in zip(small, large, strict=True))
