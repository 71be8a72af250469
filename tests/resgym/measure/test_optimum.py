"""What no host can surpass: against brute force on the reference rule, and what is kept of it."""

import pytest
import torch

from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from resgym.measure import optimum as module
from resgym.measure.optimum import optimum, shortest_games
from resgym.measure.rho import cross_play, rho, rho_starts
from resgym.players import CallablePlayer, make_agent
from resgym.solver.responses import worst_cases
from tests.reference import players
from tests.reference.search import shortest_game
from tests.resgym.games import best_against_first

SMALL = {"max_num_points": 4, "max_value": 4}


@pytest.mark.parametrize("name", ["choose_first", "choose_last", "greedy_points"])
@pytest.mark.parametrize(("dimension", "max_value"), [(2, 9), (3, 4), (4, 1)])
def test_the_shortest_games_are_those_of_brute_force(name, dimension, max_value):
    spec = GameSpec(dimension, max_num_points=4, max_value=max_value)
    starts = rho_starts(spec, 4, seed=3)
    least, most = shortest_games(make_agent(name), starts, spec, 200)
    agent = getattr(players, name)
    assert least.tolist() == [shortest_game(points, agent) for points in starts.point_lists()]
    assert most.tolist() == least.tolist()


def test_euclid_by_hand():
    """In two axes (a, 0) and (0, b) need a / b moves, rounded up, if axis 0 is always taken."""
    given = [[(5, 0), (0, 2)], [(2, 0), (0, 3)], [(6, 0), (0, 3)]]
    spec = GameSpec(2)
    found = optimum(make_agent("choose_first"), state_from_points(given, spec), spec, 200)
    assert found == (0.5, 0.5)
    cut = optimum(make_agent("choose_first"), state_from_points(given, spec), spec, 2)
    assert cut == (0.4, 0.4)
    last = optimum(make_agent("choose_last"), state_from_points(given, spec), spec, 1)
    assert last == (2 / 3, 2 / 3)
    none = state_from_points(given[:1], spec)
    assert optimum(make_agent("choose_first"), none, spec, 2) is None


def test_what_was_given_up_lies_between_its_bounds(monkeypatch):
    spec = GameSpec(max_num_points=10)
    agent = make_agent("greedy_points")
    starts = rho_starts(spec, 15, seed=1)
    exact, high = worst_cases(agent, starts, spec, 200, 30_000)
    assert torch.equal(exact, high)
    monkeypatch.setattr(module, "ANSWERS", 1500)
    least, most = shortest_games(agent, starts, spec, 200)
    assert bool(((least <= exact) & (exact <= most)).all())
    assert 0 < int((least < most).sum()) <= 15
    low, high = optimum(agent, starts, spec, 200)
    assert (low, high) == (15 / int(most.sum()), 15 / int(least.sum()))
    assert low <= 15 / int(exact.sum()) < high


def test_the_best_answers_have_all_of_the_optimum():
    hosts = {"best": CallablePlayer(best_against_first, "host"), "zeillinger": "zeillinger"}
    table = cross_play(hosts, ["choose_first", "random"], games=12, optimum=True, **SMALL)
    results = table.results
    turns = {"dimension": 2, "points": [[(5, 0), (0, 2)], [(2, 0), (0, 3)]], "games": 3}
    assert rho("all_coord", "choose_first", optimum=True, **turns).optimum == (3 / 7, 3 / 7)
    assert results["best"]["choose_first"].share == (1.0, 1.0)
    low, high = results["zeillinger"]["choose_first"].share
    assert low == high < 1.0
    assert results["best"]["random"].share is None
    assert "(100.0 %)" in str(table)
    said = [str(results["best"][agent]) for agent in table.agents]
    assert [text.endswith(" of the optimum") for text in said] == [True, False]
    assert table.to_dict()["best"]["choose_first"]["share"] == [1.0, 1.0]
    assert "share" not in table.to_dict()["best"]["random"]


def test_some_agents_and_rules_have_no_optimum():
    """For agents that draw or remember see the tests of exact players."""
    spec = GameSpec(**SMALL)
    assert optimum(make_agent("optimal"), rho_starts(spec, 20), spec, 200) is None
    other = GameSpec(rule="polyhedra", **SMALL)
    assert optimum(make_agent("choose_first"), rho_starts(other, 20), other, 200) is None
