"""The worst case by search, against plain recursion on the reference rule."""

import pytest

from resgym import GameSpec, make_agent, make_host
from resgym.measure.rho import rho_starts
from resgym.measure.strength import strength
from tests.reference import players as reference
from tests.reference.search import least_depth, tree_of

SMALL = GameSpec(3, 3, 4)


@pytest.mark.parametrize("host", ["zeillinger", "spivakovsky"])
def test_longest_games_are_those_of_the_reference(host):
    starts = rho_starts(SMALL, 12, 2)
    found = strength(make_host(host), starts, SMALL)
    lengths = [tree_of(each, getattr(reference, host))[0] for each in starts.point_lists()]
    depths = [least_depth(each) for each in starts.point_lists()]
    assert (found.moves.tolist(), found.least.tolist()) == (lengths, depths)
    shares = [depth / length for depth, length in zip(depths, lengths, strict=True)]
    assert found.per_start.tolist() == pytest.approx(shares)
    summary = found.summary()
    assert summary["lowest"] == summary["highest"]
    assert summary["lowest"]["rho"] == pytest.approx(12 / sum(lengths))
    apart = [length - depth for length, depth in zip(lengths, depths, strict=True)]
    assert (summary["optimal"], summary["largest_gap"]) == (apart.count(0), max(apart))
    cut = strength(make_host(host), starts, SMALL, 3)
    long = sum(length > 3 for length in lengths)
    assert 0 < long < 12
    assert cut.summary()["cut"] == cut.summary()["lowest"]["unfinished"] == long
    assert int((cut.per_start == 0).sum()) == long


@pytest.mark.parametrize("player", [make_host("spivakovsky"), make_agent("choose_last")])
def test_searches_that_are_given_up_leave_bounds(player):
    spec = GameSpec(3, 12, 20)
    starts = rho_starts(spec, 10, 2)
    full, found = strength(player, starts, spec), strength(player, starts, spec, positions=6)
    assert not full.open.any()
    assert found.open.any()
    assert not found.per_start[found.open].any()
    exact, bounds = full.summary(), found.summary()
    assert bounds["lowest"]["rho"] < exact["lowest"]["rho"] <= bounds["highest"]["rho"]
    assert exact["largest_gap"] > 0
    # Of the optimum a lower bound is left.
    assert bounds["unproved"] > exact["unproved"] == 0
    assert (found.least <= full.least).all()
