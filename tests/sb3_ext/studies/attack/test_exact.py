"""The worst case by search, against plain recursion on the reference rule."""

from __future__ import annotations

import pytest
import torch

from resgym import GameSpec, make_agent, solve, state_from_points
from resgym.measure.rho import rho_starts
from resgym.measure.worst_case import worst_case_moves
from resgym.players import CallablePlayer
from sb3_ext.studies.attack import ConfigError, exact_worst_case
from tests.reference import players as reference
from tests.reference.search import least_depth, shortest_game, tree_of
from tests.sb3_ext.studies.attack.helpers import small

DICE = CallablePlayer(lambda state, coords, rng: lowest_or_highest(coords, rng), "agent", "dice")


def lowest_or_highest(coords, rng):
    highest = coords.shape[1] - 1 - coords.int().flip(1).argmax(1)
    return torch.where(rng.uniform() < 0.01, highest, coords.int().argmax(1))


def starts(budget, games):
    return rho_starts(budget.game.spec(), games, budget.test.seed).point_lists()


@pytest.mark.parametrize("host", ["zeillinger", "zeillinger_lex", "spivakovsky"])
def test_longest_games_are_those_of_the_reference(host):
    budget = small("exact.starts=12", "game.max_moves=200", "game.max_value=4")
    found = exact_worst_case(host, budget, role="host")
    points = starts(budget, 12)
    lengths = [tree_of(each, getattr(reference, host))[0] for each in points]
    assert found.is_exact
    assert found.lowest == found.highest
    assert found.lowest.moves == sum(lengths)
    assert found.lowest.rho == pytest.approx(12 / sum(lengths))
    assert max(lengths) > 3
    apart = [length - least_depth(each) for length, each in zip(lengths, points, strict=True)]
    assert found.optimum.moves == sum(lengths) - sum(apart)
    assert (found.optimal, found.largest_gap) == (apart.count(0), max(apart))


def test_shortest_games_are_those_of_the_reference():
    budget = small("exact.starts=12")
    found = exact_worst_case("choose_first", budget)
    lengths = [shortest_game(points, reference.choose_first) for points in starts(budget, 12)]
    assert found.highest.moves == sum(lengths)
    assert found.role == "agent"


def test_games_longer_than_the_cut_are_cut():
    budget = small("exact.starts=12", "game.max_moves=5")
    found = exact_worst_case("zeillinger", budget)
    lengths = [tree_of(points, reference.zeillinger)[0] for points in starts(budget, 12)]
    long = sum(length > 5 for length in lengths)
    assert 0 < long < 12
    assert found.lowest.unfinished == long
    assert found.lowest.moves == sum(min(length, 5) for length in lengths)
    assert found.lowest.rho == pytest.approx((12 - long) / found.lowest.moves)


def test_endless_play_is_noticed():
    found = exact_worst_case("all_coord", small("exact.starts=6"), role="host")
    assert 0 < found.cut == found.lowest.unfinished
    assert found.is_exact


@pytest.mark.parametrize("player", ["spivakovsky", "choose_last"])
def test_searches_that_are_given_up_leave_bounds(player):
    more = ("game.max_num_points=12", "game.max_value=20", "game.max_moves=200")
    full = exact_worst_case(player, small(*more))
    found = exact_worst_case(player, small(*more, "exact.max_positions=6"))
    assert full.is_exact
    assert not found.is_exact
    assert 0 < found.given_up <= 10
    assert found.lowest.rho < full.lowest.rho <= found.highest.rho
    assert "given up" in str(found)


def test_the_optimum_is_a_bound_where_the_solver_was_stopped():
    """A host that needs no more moves than the lower bound proves it too."""
    four = ("game.dimension=4", "game.max_moves=200")
    full = exact_worst_case("zeillinger", small(*four, "exact.max_positions=20000"))
    found = exact_worst_case("zeillinger", small(*four, "exact.max_positions=60"))
    solutions = [solve(points, max_positions=60) for points in starts(small(*four), 10)]
    assert full.unproved == 0
    assert full.optimum.moves > found.optimum.moves == sum(s.lower_bound for s in solutions)
    assert 0 < found.unproved <= sum(not solution.proved for solution in solutions) < 10
    assert f"optimum at least {found.optimum.mean_length:.2f} moves" in str(found)
    assert "at least" not in str(full)
    # A game that is cut where the bound lies proves nothing.
    bounds = {int(each.lower_bound) for each in solutions if not each.proved}
    few = (four[0], "exact.max_positions=60")
    cut = [exact_worst_case("zeillinger", small(*few, f"game.max_moves={m}")) for m in bounds]
    assert all(each.cut and each.unproved >= found.unproved for each in cut)


def test_no_agent_counts_for_more_than_the_optimum(monkeypatch):
    """The optimal host needs no more moves, so searches that were given up are bounded too."""
    # The walks alone are to be given up.
    monkeypatch.setattr("resgym.solve", lambda points, max_positions: solve(points))
    more = ("game.max_num_points=5", "game.max_value=8", "exact.starts=6")
    full = exact_worst_case("greedy_points", small(*more))
    found = exact_worst_case("greedy_points", small(*more, "exact.max_positions=30"))
    assert found.given_up > full.given_up == 0
    assert found.lowest.unfinished == 0
    assert full.lowest.moves < found.lowest.moves <= found.optimum.moves
    assert found.highest.moves < full.lowest.moves
    best = exact_worst_case("optimal", small("exact.max_positions=20"), role="agent")
    assert best.given_up > 0
    assert best.lowest == best.optimum


@pytest.mark.parametrize(
    "points",
    [
        [(3, 2**58, 2**58), (2, 1, 3 * 2**57), (2**57, 1, 0)],
        [(2, 0, 2**58), (3 * 2**57, 1, 1), (2, 2, 0)],
    ],
)
def test_a_game_that_overflowed_may_have_been_the_shortest(points):
    """Others end later, or go on beyond the limit; neither proves anything."""
    spec, agent = GameSpec(3, 3), make_agent("choose_last")
    moves, given_up = worst_case_moves(agent, state_from_points([points], spec), spec, 50, 3000)
    bound = solve(points, agent=agent, max_positions=3000)
    assert bound.stopped_by == "overflow"
    assert given_up.tolist() == [True]
    assert moves[0] <= bound.lower_bound


@pytest.mark.parametrize(
    ("player", "settings", "message"),
    [
        ("random_pair", [], "exact: host must be deterministic"),
        (DICE, [], "exact: agent must be deterministic, got 'dice'"),
        ("zeillinger", ["game.polytope=newton"], "exact needs game.polytope dominance"),
        ("zeillinger", ["exact=null"], "exact is null in this budget"),
    ],
)
def test_what_cannot_be_searched(player, settings, message):
    with pytest.raises(ConfigError, match=f"^.*{message}.*$"):
        exact_worst_case(player, small(*settings))
