"""The worst case by search, against plain recursion on the reference rule."""

from __future__ import annotations

import pytest
import torch

from resgym import GameSpec, make_agent, make_host, solve
from resgym.measure.rho import rho_starts
from sb3_ext.attack.strength import least_depths, strength
from tests.reference import players as reference
from tests.reference.search import least_depth, shortest_game, tree_of

SMALL = GameSpec(3, 3, 4)


@pytest.mark.parametrize("host", ["zeillinger", "zeillinger_lex", "spivakovsky"])
def test_longest_games_are_those_of_the_reference(host):
    starts = rho_starts(SMALL, 12, 2)
    found = strength(make_host(host), starts, SMALL)
    lengths = [tree_of(each, getattr(reference, host))[0] for each in starts.point_lists()]
    depths = [least_depth(each) for each in starts.point_lists()]
    assert found.moves.tolist() == lengths
    assert found.least.tolist() == depths
    assert max(lengths) > 3
    shares = [depth / length for depth, length in zip(depths, lengths, strict=True)]
    assert found.value == pytest.approx(sum(shares) / 12)
    summary = found.summary()
    assert summary["lowest"] == summary["highest"]
    assert summary["lowest"]["rho"] == pytest.approx(12 / sum(lengths))
    apart = [length - depth for length, depth in zip(lengths, depths, strict=True)]
    assert (summary["optimal"], summary["largest_gap"]) == (apart.count(0), max(apart))


def test_shortest_games_are_those_of_the_reference():
    starts = rho_starts(SMALL, 12, 2)
    found = strength(make_agent("choose_first"), starts, SMALL)
    lists = starts.point_lists()
    assert found.moves.tolist() == [shortest_game(each, reference.choose_first) for each in lists]
    assert float(found.per_start.max()) <= 1.0


def test_games_beyond_the_limit_are_cut():
    starts = rho_starts(SMALL, 12, 2)
    lengths = [tree_of(points, reference.zeillinger)[0] for points in starts.point_lists()]
    found = strength(make_host("zeillinger"), starts, SMALL, 3)
    long = sum(length > 3 for length in lengths)
    assert 0 < long < 12
    assert found.summary()["cut"] == found.summary()["lowest"]["unfinished"] == long
    assert int((found.per_start == 0).sum()) == long


@pytest.mark.parametrize("player", [make_host("spivakovsky"), make_agent("choose_last")])
def test_searches_that_are_given_up_leave_bounds(player):
    spec = GameSpec(3, 12, 20)
    starts = rho_starts(spec, 10, 2)
    full = strength(player, starts, spec)
    found = strength(player, starts, spec, positions=6)
    assert not full.open.any()
    assert found.open.any()
    assert found.summary()["lowest"]["rho"] < full.summary()["lowest"]["rho"]
    assert full.summary()["lowest"]["rho"] <= found.summary()["highest"]["rho"]
    assert not found.per_start[found.open].any()


def test_the_optimum_is_a_bound_where_the_solver_was_stopped():
    spec = GameSpec(4, 3, 6)
    starts = rho_starts(spec, 10, 2)
    least, proved = least_depths(starts, spec, 60)
    full, all_proved = least_depths(starts, spec, 20_000)
    solutions = [solve(points, max_positions=60) for points in starts.point_lists()]
    assert all_proved.all()
    assert 0 < int((~proved).sum()) < 10
    bounds = [int(each.lower_bound) for each in solutions]
    assert least[~proved].tolist() == [b for b, p in zip(bounds, proved, strict=True) if not p]
    assert torch.equal(least[proved], full[proved])
    summary = strength(make_host("zeillinger"), starts, spec, positions=60).summary()
    assert summary["unproved"] > 0
