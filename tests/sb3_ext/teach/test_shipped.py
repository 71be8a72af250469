"""The players that come with the package."""

from itertools import permutations

import pytest
import torch

import resgym
from resgym import GameSpec
from resgym.game.rng import RowRandom
from resgym.game.state import state_from_points
from resgym.measure.rho import rho_starts
from resgym.players import make_agent, make_host
from resgym.solver.responses import worst_cases
from resgym.testing import check_player
from sb3_ext.checkpoints.models import read_policy
from sb3_ext.minimax import minimax_targets
from sb3_ext.teach.shipped import AGENT, ANY, PLAYED, SHIPPED
from tests.resgym.solver.positions import LEAST

MANY = [(40 - p, p, (7 * p) % 41) for p in range(41)]
STARTS = [resgym.singularity(name) for name in resgym.singularity_names()]


def one_answer(host, points, **spec):
    state = state_from_points([points], resgym.GameSpec(**spec))
    return make_host(host).act(state, None, RowRandom(torch.tensor([0])))


def worst_case_depths(host, starts):
    spec = GameSpec(3)
    return worst_cases(host, state_from_points(starts, spec), spec, 40, 100_000)[0].tolist()


def test_taught_resolves_the_sixteen_singularities_in_the_least_depth():
    """The optima are those that `resgym.solve` proves; Zeillinger's host is the control."""
    assert worst_case_depths(make_host("taught"), STARTS) == LEAST["depth"]
    assert worst_case_depths(make_host("zeillinger_lex"), STARTS) != LEAST["depth"]


def test_taught_in_four_axes():
    """Its longest games from random starts are less than half of those of the other hosts."""
    spec = GameSpec(4, 5, 9)
    starts = rho_starts(spec, 10, seed=5)

    def moves(host):
        return [int(each.sum()) for each in worst_cases(make_host(host), starts, spec, 100, 20_000)]

    # Of the others lower bounds count.
    assert 2 * moves("taught")[1] < min(moves("zeillinger")[0], moves("spivakovsky")[0])


@pytest.mark.parametrize(
    ("host", "files", "size", "other"),
    [("taught", [*SHIPPED.values(), AGENT], 3.5e5, 6), ("played", PLAYED.values(), 8e5, 4)],
)
def test_the_contract(host, files, size, other):
    check_player(make_host(host), num_games=8)
    assert all(file.stat().st_size < size for file in files)
    # In other numbers of axes Zeillinger's host answers.
    for points in ([(3, 0, 1), (0, 2, 4)], [(0, 5, 2), (1, 1, 1), (4, 0, 3)]):
        more = [point + (0,) * (other - 3) for point in points]
        assert one_answer(host, more, dimension=other) == one_answer(
            "zeillinger", more, dimension=other
        )


@pytest.mark.parametrize("name", ["taught", "played"])
def test_the_learned_agents_keep_the_contract(name):
    agent = make_agent(name)
    for dimension in (3, 4):
        check_player(agent, dimension=dimension, num_games=8)
    both = [agent, "greedy_points"]  # which answers in other numbers of axes
    own, greedy = (resgym.rho("random", a, games=20, dimension=4, seed=1) for a in both)
    assert own == greedy
    assert (
        resgym.rho("zeillinger", agent, games=2, points=[MANY], max_num_points=64).unfinished == 0
    )


@pytest.mark.parametrize(
    ("dimension", "least", "number"), [(2, 0.9, 12), (3, 0.9, 12), (4, 0.85, 6), (5, 0.45, 5)]
)
def test_any_plays_every_number_of_axes(dimension, least, number):
    """Its strength in the exact worst case; Spivakovsky's host is the control in 3 to 5 axes."""
    (file,) = {*ANY.values()}
    assert file.stat().st_size < 1e6
    spec = GameSpec(dimension, 5, max_value=4)
    starts = rho_starts(spec, number, seed=9)
    best = [resgym.solve(points).value for points in starts.point_lists()]

    def strength(name):
        longest = worst_cases(make_host(name), starts, spec, 200, 3000)[1].tolist()
        return sum(a / b for a, b in zip(best, longest, strict=True)) / len(best)

    assert strength("any") > least
    assert dimension == 2 or strength("spivakovsky") < least
    for player in (make_host("any"), make_agent("any")):
        check_player(player, dimension=dimension, num_games=6)


@pytest.mark.parametrize("name", ["S12", "T3,4,5"])
def test_trees_of_any_do_not_depend_on_the_names_of_variables(name):
    """Those of Zeillinger's host do."""
    points = resgym.singularity(name)

    def sizes(host):
        renamed = ([*zip(*axes, strict=True)] for axes in permutations(zip(*points, strict=True)))
        return {resgym.resolution_tree(each, host).num_nodes for each in renamed}

    assert len(sizes("any")) == 1 < len(sizes("zeillinger"))


def test_played_looks_ahead_with_its_own_network():
    state = rho_starts(resgym.GameSpec(3, 12), 50, seed=3)
    values = minimax_targets(read_policy(PLAYED[3]).q_net, state, 0.98, plies=2)
    found = make_host("played", lookahead=2).act(state, None, None)
    assert torch.equal(found, values.argmax(1))
    assert not torch.equal(found, make_host("played").act(state, None, None))
    flat = state_from_points([[(3, 0), (0, 2)]], resgym.GameSpec(2, 2))
    assert int(make_host("played", lookahead=1).act(flat, None, None)) == 0


def test_the_learned_agents_hold_up_the_optimal_host():
    """For nearly as long as can be; the best scripted agent is the control."""

    def moves(agent):
        return resgym.rho("optimal", agent, games=40, max_num_points=20, seed=4).moves

    least = moves("optimal")
    learned = sorted(map(moves, ("taught", "played")))
    assert moves("greedy_points") < 0.93 * least < learned[0] <= learned[1] <= least
