"""Rollouts before each answer: against plain recursion on the reference rule, and their gain."""

from __future__ import annotations

import pytest
import torch

import resgym
from resgym.game.rng import RowRandom
from resgym.measure.rho import rho_starts
from resgym.players import make_agent, make_host
from sb3_ext.studies.attack import exact_worst_case, exploit
from sb3_ext.studies.attack.responder import RolloutPlayer
from tests.reference import players as reference
from tests.reference.rule import host_actions, is_finished, move
from tests.sb3_ext.studies.attack.helpers import small

SPEC = resgym.GameSpec(3, 4, 8)
GAMES = {"max_num_points": 4, "max_value": 8, "games": 60, "seed": 3}


def played(points, host, agent, most):
    """Moves of a game on the reference rule, at most so many."""
    moves = 0
    while not is_finished(points) and moves < most:
        axes = host(points)
        points = move(points, axes, agent(points, axes))
        moves += 1
    return moves


def rows(number):
    return RowRandom.for_episode(torch.arange(number), torch.zeros(number, dtype=torch.int64))


def test_an_agent_takes_the_longest_game():
    host, usual = reference.zeillinger, reference.choose_last
    agent = RolloutPlayer(make_agent("choose_last"), make_host("zeillinger"), SPEC, 30)
    state = rho_starts(SPEC, 50, 4)
    sets = torch.tensor([[True, True, True], [True, False, True]])[torch.arange(50) % 2]
    answers = agent.act(state, sets, rows(50)).tolist()
    for points, coords, answer in zip(state.point_lists(), sets.tolist(), answers, strict=True):
        axes = tuple(axis for axis in range(3) if coords[axis])
        lengths = [played(move(points, axes, axis), host, usual, 30) for axis in axes]
        longest = [k for k, length in zip(axes, lengths, strict=True) if length == max(lengths)]
        assert answer == (axes[-1] if axes[-1] in longest else longest[0])
    assert sum(answer != 2 for answer in answers) > 5


def test_a_host_takes_the_shortest_game():
    usual, agent = reference.zeillinger, reference.choose_first
    host = RolloutPlayer(make_host("zeillinger"), make_agent("choose_first"), SPEC, 30)
    state, actions = rho_starts(SPEC, 40, 4), host_actions(3)
    answers = host.act(state, None, rows(40)).tolist()
    for points, answer in zip(state.point_lists(), answers, strict=True):
        after = [move(points, axes, agent(points, axes)) for axes in actions]
        lengths = [played(each, usual, agent, 30) for each in after]
        best = [k for k, length in enumerate(lengths) if length == min(lengths)]
        named = actions.index(usual(points))
        assert answer == (named if named in best else best[0])


@pytest.mark.parametrize("name", ["choose_first", "greedy_points"])
def test_it_never_does_less_than_its_policy(name):
    """Against a host that draws nothing the plan that was best stays open, so games only grow."""
    host = make_host("zeillinger")
    policy = make_agent(name)
    alone = resgym.rho(host, policy, **GAMES)
    ahead = resgym.rho(host, RolloutPlayer(policy, host, SPEC, 200), **GAMES)
    assert ahead.moves > 1.1 * alone.moves
    budget = small("game.max_num_points=4", "game.max_value=8", "game.max_moves=200",
                   "exact.starts=60", "test.seed=3")  # fmt: skip
    assert ahead.moves <= exact_worst_case("zeillinger", budget).lowest.moves


def test_it_does_not_know_what_will_be_drawn():
    """The random numbers of the rollouts are others: knowing them would win more."""
    host = make_host("random")
    policy = make_agent("choose_first")
    ahead = RolloutPlayer(policy, host, SPEC, 10)
    state, coords = rho_starts(SPEC, 40, 4), torch.ones(40, 3, dtype=torch.bool)
    some = ahead.act(state, coords, rows(40))
    assert torch.equal(some, ahead.act(state, coords, rows(40)))
    other = ahead.act(state, coords, rows(40).split(1))
    assert not torch.equal(some, other)


def test_rows_do_not_depend_on_each_other():
    agent = RolloutPlayer(make_agent("choose_first"), make_host("zeillinger"), SPEC, 30)
    state, coords = rho_starts(SPEC, 20, 4), torch.ones(20, 3, dtype=torch.bool)
    together = agent.act(state, coords, rows(20))
    for row in (0, 7, 19):
        index = torch.tensor([row])
        alone = agent.act(state.select(index), coords[index], rows(20).select(index))
        assert int(alone) == int(together[row])


def test_an_attack_with_lookahead():
    result = exploit(
        "zeillinger",
        small("responder.lookahead_moves=20", "responder.updates=0", "exact.starts=100"),
    )
    (seed,) = result.trained
    assert seed.lookahead is not None
    assert seed.lookahead.rho < seed.test.rho
    assert result.exact is not None
    assert result.exact.lowest.rho <= seed.lookahead.rho
    names = [name for name in result.scripted if name.endswith(" with lookahead")]
    assert len(names) == 1
    assert "with lookahead" in result.worst_responder
    assert "the same with lookahead" in result.report()
