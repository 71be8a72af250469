"""The players that play by the solver."""

from functools import cache

import pytest
import torch

from resgym import GameSpec, make_agent, make_host, rho, state_from_points
from resgym.game.spec import action_axes, host_action_table
from resgym.polynomials.singularities import random_family
from resgym.solver.solve import solve
from resgym.testing import check_player
from resgym.trees.growth import resolution_tree
from tests.reference.rule import move
from tests.resgym.games import random_rows as rng
from tests.resgym.solver.positions import OBJECTIVES, drawn

STARTS = [random_family("random(points=5,max=4,dim=3)", seed) for seed in range(10)]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_the_contract_of_players(dimension, objective):
    spec = GameSpec(dimension, 3, 3)
    for make in (make_host, make_agent):
        player = make("optimal", objective=objective, budget=40)
        check_player(player, num_games=6, spec=spec)
    check_player(make_host("safe", budget=40), num_games=6, spec=spec)


@pytest.mark.parametrize("name", ["A4", "D5", "E7"])
def test_the_hosts_tree_is_optimal(name):
    hosts = [make_host("optimal", objective=objective) for objective in ("nodes", "leaves")]
    small, slim = (resolution_tree(name, host) for host in hosts)
    assert resolution_tree(name, "optimal").depth == solve(name).value
    assert small.num_nodes == solve(name, "nodes").value
    assert slim.num_leaves == solve(name, "leaves").value


def longest(points, host, agent):
    return rho(host, agent, points=[list(each) for each in points], games=1).longest


@pytest.mark.parametrize("points", STARTS)
def test_the_agent_forces_the_optimum(points):
    """Optimal play on both sides lasts exactly the proved depth."""
    host = make_host("optimal", budget=100_000)
    agent = make_agent("optimal", budget=100_000)
    value = solve(points).value
    assert longest(points, host, agent) == value
    for other in ("zeillinger", "weak_spivakovsky", "zeillinger_lex"):
        assert longest(points, other, agent) >= value


def test_without_budget_the_fallback_answers():
    states = state_from_points([list(points) for points in STARTS], GameSpec(3))
    host = make_host("optimal", budget=1)
    zeillinger = make_host("zeillinger")
    # Some positions are settled by a single expansion.
    open_rows = torch.tensor([solve(points).positions_searched > 1 for points in STARTS])
    assert open_rows.sum() >= 5
    same = host.act(states, None, rng(10)) == zeillinger.act(states, None, rng(10))
    assert same[open_rows].all()
    for name in ("optimal", "safe"):
        fixed = make_host(name, budget=1, fallback="all_coord")
        assert fixed.act(states, None, rng(10))[open_rows].eq(3).all()
    coords = host_action_table(3)[torch.full((10,), 3)]
    expected = make_agent("greedy_points").act(states, coords, rng(10))
    answers = make_agent("optimal", budget=1).act(states, coords, rng(10))
    # Where a single answer is not settled by one expansion, what is proved still tells.
    assert answers.eq(expected).float().mean() >= 0.5
    for points, answer, other in zip(STARTS, answers, expected, strict=True):
        values = [solve(move(points, (0, 1, 2), axis)).value for axis in range(3)]
        assert answer == other or values[answer] == max(values)


@pytest.mark.parametrize(
    ("dimension", "points", "top"), [(2, 8, 30), (3, 12, 12), (3, 6, 9), (4, 5, 3)]
)
def test_the_worst_case_of_a_safe_host_is_as_promised(dimension, points, top):
    host = make_host("safe", agents=["random", "choose_last"])
    for position in drawn(4, 0, dimension, points, top):
        assert solve(position, host=host).value == solve(position).value


@cache
def least_moves(points):
    """The fewest moves expected of optimal sets against a random agent, found by trying all."""
    if len(points) == 1:
        return 0.0
    answers = [[tuple(move(points, axes, axis)) for axis in axes] for axes in action_axes(3)]
    values = [max(solve(each).value for each in after) for after in answers]
    safe = [after for after, value in zip(answers, values, strict=True) if value == min(values)]
    return min(1 + sum(map(least_moves, after)) / len(after) for after in safe)


def moves_of(host, points):
    """The moves that are expected of a host."""
    if len(points) == 1:
        return 0.0
    state = state_from_points([list(points)], GameSpec(3))
    axes = action_axes(3)[int(host.act(state, None, rng(1)))]
    return 1 + sum(moves_of(host, tuple(move(points, axes, axis))) for axis in axes) / len(axes)


def test_a_safe_host_is_as_quick_as_optimal_sets_allow():
    host = make_host("safe", agents="random", lookahead=30)
    gain = 0.0
    for points in drawn(5, 3, 3, 6, 6):
        quickest = moves_of(host, points)
        assert quickest == pytest.approx(least_moves(points))
        gain += moves_of(make_host("optimal"), points) - quickest
    assert gain > 0.2
