"""Labels of the compiled search: values and sets against trying everything, digests, limits."""

import random

import pytest

from resgym.game.exact import canonical, prune
from resgym.game.spec import action_axes
from resgym.solver import kernels
from resgym.solver.labels import Labeller, digests
from resgym.solver.search import Search
from tests.reference.search import Exhaustive
from tests.resgym.solver.positions import OBJECTIVES, batch, drawn

pytest.importorskip("numba")

# Most points, the largest value, and how many positions: in four axes nearly all that there are.
SIZES = {2: (6, 9, 900), 3: (4, 3, 950), 4: (4, 1, 140), 5: (2, 1, 140)}


def different_positions(dimension, points, top, number):
    """So many positions, none of them twice."""
    found = {}
    seed = dimension
    while len(found) < number:
        found.update(dict.fromkeys(drawn(number, seed, dimension, points, top)))
        seed += 10
    return [*found][:number]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("dimension", SIZES)
@pytest.mark.parametrize("share", [0.05, pytest.param(1.0, marks=pytest.mark.long)])
def test_values_and_optimal_sets(objective, dimension, share):
    """In the long test 2,130 positions for each objective, of which none is left out."""
    points, top, number = SIZES[dimension]
    positions = different_positions(dimension, points, top, int(share * number))
    arrays = batch(positions, points)
    costs, _, solved = Labeller(dimension, points, objective, budget=10**6).costs(*arrays)
    # What is called proved is proved, however little may be spent.
    hurried = Labeller(dimension, points, objective, budget=2, room=2**10)
    hasty, _, told = hurried.costs(*arrays, exact=False)
    assert solved.all()
    tried = Exhaustive(*OBJECTIVES[objective])
    for place, cost in zip(positions, costs, strict=True):
        assert tried.value(place) == cost.min()
        best = [action_axes(dimension)[action] for action in (cost == cost.min()).nonzero()[0]]
        assert tried.best_sets(place) == best
    least = costs.min(1, keepdims=True)
    found = hasty.min(1, keepdims=True)
    assert (found[told] == least[told]).all()
    assert ((hasty == found)[told] == (costs == least)[told]).all()
    assert (hasty <= costs)[told].all()
    assert told.any()


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
    # Two or three positions fill the table, which is emptied for the next one.
    large = Labeller(3, 4, room=600).costs(points << 30, count)
    assert small[2].all()
    assert all((one == other).all() for one, other in zip(small, large, strict=True))
