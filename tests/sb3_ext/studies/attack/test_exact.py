"""The worst case by search, against plain recursion on the reference rule."""

from __future__ import annotations

import pytest

from resgym.measure.rho import rho_starts
from sb3_ext.studies.attack import ConfigError, exact_worst_case
from tests.reference import players as reference
from tests.reference.search import shortest_game, tree_of
from tests.sb3_ext.studies.attack.helpers import small


def starts(budget, games):
    return rho_starts(budget.game.spec(), games, budget.test.seed).point_lists()


@pytest.mark.parametrize("host", ["zeillinger", "zeillinger_lex", "spivakovsky"])
def test_longest_games_are_those_of_the_reference(host):
    budget = small("exact.starts=12", "game.max_moves=200")
    found = exact_worst_case(host, budget, role="host")
    lengths = [tree_of(points, getattr(reference, host))[0] for points in starts(budget, 12)]
    assert found.is_exact
    assert found.lowest == found.highest
    assert found.lowest.moves == sum(lengths)
    assert found.lowest.rho == pytest.approx(12 / sum(lengths))
    assert max(lengths) > 3


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
    assert found.endless > 0
    assert found.lowest.unfinished >= found.endless


def test_searches_that_are_given_up_leave_bounds():
    full = exact_worst_case("zeillinger", small())
    found = exact_worst_case("zeillinger", small("exact.max_positions=6"))
    assert not found.is_exact
    assert 0 < found.given_up <= 10
    assert found.lowest.rho < full.lowest.rho < found.highest.rho
    assert "given up" in str(found)


@pytest.mark.parametrize(
    ("player", "settings", "message"),
    [
        ("random_pair", [], "exact: host must be deterministic"),
        ("zeillinger", ["game.polytope=newton"], "exact needs game.polytope dominance"),
        ("zeillinger", ["exact=null"], "exact is null in this budget"),
    ],
)
def test_what_cannot_be_searched(player, settings, message):
    with pytest.raises(ConfigError, match=f"^.*{message}.*$"):
        exact_worst_case(player, small(*settings))
