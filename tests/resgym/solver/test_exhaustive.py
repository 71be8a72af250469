"""Every value and every optimal set of small positions, against trying everything."""

import pytest

from resgym.game.spec import action_axes
from resgym.solver.labels import Labeller
from tests.reference.search import Exhaustive
from tests.resgym.solver.positions import OBJECTIVES, batch, drawn

pytest.importorskip("numba")

# Most points, the largest value, and how many positions: in four axes nearly all that there are.
SIZES = {2: (6, 9, 900), 3: (4, 3, 950), 4: (4, 1, 140), 5: (2, 1, 140)}


def different_positions(dimension, points, top, number):
    """So many positions, none of them twice."""
    found, seed = {}, dimension
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
    least, found = costs.min(1, keepdims=True), hasty.min(1, keepdims=True)
    assert (found[told] == least[told]).all()
    assert ((hasty == found)[told] == (costs == least)[told]).all()
    assert (hasty <= costs)[told].all()
    assert told.any()
