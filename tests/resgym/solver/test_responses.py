"""Best responses against fixed players, found again by exhaustive search."""

import math
import time

import pytest
import torch

from resgym import GameSpec, make_host, state_from_points
from resgym.players.registry import resolve_player
from resgym.polynomials.singularities import random_family, singularity
from resgym.solver.responses import worst_cases
from resgym.solver.solve import solve
from resgym.trees.growth import resolution_tree
from tests.reference import players, rule
from tests.reference.search import shortest_game, tree_of
from tests.resgym.solver.positions import OBJECTIVES
from tests.resgym.trees.tree_check import check_tree

HOSTS = ("zeillinger", "zeillinger_lex", "weak_spivakovsky", "spivakovsky")
AGENTS = ("choose_first", "choose_last", "greedy_points")
STARTS = (
    *(list(singularity(name)) for name in ("A3", "D4")),
    *(list(random_family("random(points=4,max=3,dim=3)", seed)) for seed in range(3)),
    *(list(random_family("random(points=4,max=2,dim=4)", seed)) for seed in range(2)),
)
SIX = [(0, 1, 0, 1), (0, 2, 0, 0), (1, 0, 0, 1), (1, 0, 1, 0), (1, 1, 0, 0), (2, 0, 0, 0)]


def test_zeillinger_as_published():
    first = resolution_tree([(0, 0, 4), (5, 0, 1), (1, 5, 1), (0, 25, 0)], "zeillinger")
    assert first.root.axes == (0, 2)
    # Of equally good pairs he takes the first of the list, and trees keep the order of the list.
    assert resolution_tree(SIX, "zeillinger").depth == 6
    # A best response meets him as in the environments, which sort, whatever order was typed.
    for points in (SIX, sorted(SIX, reverse=True)):
        longest = solve(points, host="zeillinger")
        assert (longest.value, longest.tree.depth) == (4, 4)
        check_tree(longest.tree, points, one_game=True)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("host", HOSTS)
def test_longest_game_against_a_host(host, start):
    # Typed in the order of states, so that the reference host sees the same lists; it is asked
    # about sorted positions afterwards, which only Zeillinger's host can tell from typed ones.
    start = sorted(start, reverse=True)
    longest, size, leaves = (solve(start, objective, host=host) for objective in OBJECTIVES)
    assert all(each.proved for each in (longest, size, leaves))
    if host != "zeillinger":
        expected = tree_of(rule.canonical(start), players.HOSTS[host])
        assert (longest.value, size.value) == expected
    tree = resolution_tree(start, host)
    found = longest.value, size.value, leaves.value
    assert found == (tree.depth, tree.num_nodes, tree.num_leaves)
    assert size.tree.to_dict()["charts"] == tree.to_dict()["charts"]
    assert (longest.tree.depth, longest.tree.num_leaves) == (longest.value, 1)
    check_tree(longest.tree, start, one_game=True)
    check_tree(size.tree, start)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("agent", AGENTS)
def test_shortest_game_against_an_agent(agent, start):
    solution = solve(start, agent=agent)
    assert solution.proved
    assert solution.value == shortest_game(rule.canonical(start), players.AGENTS[agent])
    assert solution.tree.depth == solution.value
    check_tree(solution.tree, start, one_game=True)
    assert solve(start, "nodes", agent=agent).value == solution.value + 1


def test_endless_play_is_proved():
    for name in ("D4", "E8"):
        for objective in OBJECTIVES:
            solution = solve(name, objective, host="all_coord")
            found = solution.proved, solution.value, solution.tree
            assert found == (True, math.inf, None)
            assert solution.to_dict()["value"] == "infinite"


def test_stopped_responses_say_what_is_proved():
    for limit in (0, 6, 12):
        # Positions that recur on several branches are explored at the first, so more may be known.
        stopped = solve("E8", host="zeillinger", max_depth=limit)
        assert limit + 1 <= stopped.lower_bound <= 13
        assert stopped.value == (13 if stopped.proved else None)
        nodes = solve("E8", "nodes", host="zeillinger", max_depth=limit)
        assert 2 * limit + 3 <= nodes.lower_bound <= 91
        assert nodes.value == (91 if nodes.proved else None)
    assert not solve("E8", host="zeillinger", max_depth=6).proved
    assert solve("E8", host="zeillinger", max_depth=13).value == 13
    value = solve("E8", agent="greedy_points").value
    stopped = solve("E8", agent="greedy_points", max_depth=value - 1)
    assert (stopped.proved, stopped.lower_bound) == (False, value)
    early = solve("E8", agent="greedy_points", time_limit=0.0)
    assert (early.proved, early.stopped_by) == (False, "time_limit")
    assert early.lower_bound <= value


def test_loading_a_player_takes_none_of_the_time(monkeypatch):
    late = []
    clock = time.perf_counter

    def slow(*arguments):
        late.append(1000)
        return resolve_player(*arguments)

    monkeypatch.setattr(time, "perf_counter", lambda: clock() + sum(late))
    monkeypatch.setattr("resgym.solver.responses.resolve_player", slow)
    assert solve("E8", host="zeillinger", time_limit=100).value == 13
    assert late


@pytest.mark.parametrize("host", ["all_coord", "zeillinger", "spivakovsky"])
def test_a_game_that_leaves_the_integers_proves_nothing(host):
    """What comes after an overflow is not known, though no move follows."""
    large = 2**58
    points = [(large + 1, 0, large), (3, large, 0), (0, 1, large + 7)]
    found = solve(points, host=host)
    assert (found.proved, found.value, found.upper_bound) == (False, None, None)
    assert found.stopped_by == "overflow"
    state = state_from_points([points], GameSpec(3))
    low, high = worst_cases(make_host(host), state, GameSpec(3), 50, 1000)
    assert (int(low), int(high)) == (1, 51)


class ByParity:
    """Plays as one of two hosts, by the parity of the sum of coordinates."""

    role = "host"
    invariant = "shift"

    def __init__(self):
        self.even, self.odd = make_host("zeillinger"), make_host("weak_spivakovsky")

    def act(self, state, coords, rng):
        lowest = state.points.masked_fill(state.points < 0, 99).amin(1, keepdim=True)
        even = (state.points - lowest).clamp(min=0).sum((1, 2)) % 2 == 0
        actions = (each.act(state, coords, rng) for each in (self.even, self.odd))
        return torch.where(even, *actions)


def test_positions_are_not_divided_for_a_host_that_is_the_same_for_shifts_alone():
    for start in ([(6, 2, 4), (4, 0, 6), (0, 2, 6)], [(4, 6, 0), (6, 0, 4), (6, 2, 2)]):
        assert solve(start, host=ByParity()).value == resolution_tree(start, ByParity()).depth
