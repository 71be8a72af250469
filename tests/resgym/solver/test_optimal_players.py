"""The players that play by the solver."""

from __future__ import annotations

import pytest
import torch

from resgym import GameSpec, RowRandom, make_agent, make_host, state_from_points
from resgym.game.actions import action_axes, host_action_table
from resgym.players import check_player
from resgym.polynomials.singularities import random_family, singularity_names
from resgym.solver.solve import solve
from resgym.trees.growth import resolution_tree
from tests.reference.rule import move

STARTS = [random_family("random(points=5,max=4,dim=3)", seed) for seed in range(10)]


def rng(number: int) -> RowRandom:
    return RowRandom(torch.arange(number))


@pytest.mark.parametrize("objective", ["depth", "nodes"])
@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_the_contract_of_players(dimension, objective):
    spec = GameSpec(dimension, 3, 3)
    for make in (make_host, make_agent):
        player = make("optimal", objective=objective, budget=40)
        check_player(player, num_games=6, spec=spec)


@pytest.mark.parametrize("name", singularity_names())
def test_the_hosts_tree_is_optimal(name):
    assert resolution_tree(name, "optimal").depth == solve(name).value
    smallest = make_host("optimal", objective="nodes")
    assert resolution_tree(name, smallest).num_nodes == solve(name, "nodes").value


@pytest.mark.parametrize("points", STARTS)
def test_the_agent_forces_the_optimum(points):
    """Optimal play on both sides lasts exactly the proved depth."""
    host = make_host("optimal", budget=100_000)
    agent = make_agent("optimal", budget=100_000)
    value = solve(points).value
    assert resolution_tree(points, host, agent=agent).depth == value
    for other in ("zeillinger", "weak_spivakovsky", "zeillinger_lex"):
        assert resolution_tree(points, other, agent=agent).depth >= value
    for other in ("choose_first", "choose_last", "greedy_points"):
        assert resolution_tree(points, host, agent=other).depth <= value


def test_the_agents_answer_is_worst_for_the_host():
    agent = make_agent("optimal", budget=100_000)
    for points in STARTS[:4]:
        state = state_from_points([list(points)], GameSpec(3))
        for action, axes in enumerate(action_axes(3)):
            coords = host_action_table(3)[action : action + 1]
            chosen = int(agent.act(state, coords, rng(1)))
            values = [solve(move(points, axes, axis)).value for axis in axes]
            assert values[axes.index(chosen)] == max(values)


def test_without_budget_the_fallback_answers():
    states = state_from_points([list(points) for points in STARTS], GameSpec(3))
    host, zeillinger = make_host("optimal", budget=1), make_host("zeillinger")
    # Some positions are settled by a single expansion.
    open_rows = torch.tensor([solve(points).positions_searched > 1 for points in STARTS])
    assert open_rows.sum() >= 5
    same = host.act(states, None, rng(10)) == zeillinger.act(states, None, rng(10))
    assert same[open_rows].all()
    fixed = make_host("optimal", budget=1, fallback="all_coord")
    assert fixed.act(states, None, rng(10))[open_rows].eq(3).all()
    coords = host_action_table(3)[torch.full((10,), 3)]
    agent, greedy = make_agent("optimal", budget=1), make_agent("greedy_points")
    expected = greedy.act(states, coords, rng(10))
    answers = agent.act(states, coords, rng(10))
    # Where a single answer is not settled by one expansion, what is proved still tells.
    assert answers.eq(expected).float().mean() >= 0.5


def test_the_answer_does_not_depend_on_what_was_asked_before():
    spec = GameSpec(3)
    questions = [state_from_points([list(points)], spec) for points in STARTS]
    answers = [make_host("optimal", budget=30).act(q, None, rng(1)) for q in questions]
    back = [make_host("optimal", budget=30).act(q, None, rng(1)) for q in reversed(questions)]
    assert answers == list(reversed(back))


@pytest.mark.parametrize("make", [make_host, make_agent])
def test_bad_arguments_are_named(make):
    with pytest.raises(ValueError, match="objective must be 'depth' or 'nodes', got 'size'"):
        make("optimal", objective="size")
    with pytest.raises(ValueError, match="budget must be at least 1, got 0"):
        make("optimal", budget=0)
    with pytest.raises(ValueError, match="'nobody'"):
        make("optimal", fallback="nobody")
