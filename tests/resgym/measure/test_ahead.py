"""Lookahead, against plain recursion on the reference rule."""

import torch

from resgym import GameSpec, make_agent, make_host
from resgym.game.rng import RowRandom
from resgym.measure.games import Ahead
from resgym.measure.rho import rho_starts
from tests.reference import players as reference
from tests.reference.rule import host_actions, move

SPEC = GameSpec(3, 4, 8)


def rows(number):
    return RowRandom.for_episode(torch.arange(number), torch.zeros(number, dtype=torch.int64))


def test_an_agent_takes_the_longest_game():
    agent = Ahead(make_agent("choose_last"), make_host("zeillinger"), SPEC, 30)
    state = rho_starts(SPEC, 50, 4)
    sets = torch.tensor([[True, True, True], [True, False, True]])[torch.arange(50) % 2]
    answers = agent.act(state, sets, rows(50)).tolist()
    for points, coords, answer in zip(state.point_lists(), sets.tolist(), answers, strict=True):
        axes = tuple(axis for axis in range(3) if coords[axis])
        after = [move(points, axes, axis) for axis in axes]
        lengths = [reference.play("zeillinger", "choose_last", each, 30)[0] for each in after]
        longest = [k for k, length in zip(axes, lengths, strict=True) if length == max(lengths)]
        assert answer == (axes[-1] if axes[-1] in longest else longest[0])
    assert sum(answer != 2 for answer in answers) > 5


def test_a_host_takes_the_shortest_game():
    host = Ahead(make_host("zeillinger"), make_agent("choose_first"), SPEC, 30)
    state, actions = rho_starts(SPEC, 40, 4), host_actions(3)
    answers = host.act(state, None, rows(40)).tolist()
    for points, answer in zip(state.point_lists(), answers, strict=True):
        after = [move(points, axes, reference.choose_first(points, axes)) for axes in actions]
        lengths = [reference.play("zeillinger", "choose_first", each, 30)[0] for each in after]
        best = [k for k, length in enumerate(lengths) if length == min(lengths)]
        named = actions.index(reference.zeillinger(points))
        assert answer == (named if named in best else best[0])


def test_it_does_not_know_what_will_be_drawn():
    """The random numbers of the rollouts are others: knowing them would win more."""
    ahead = Ahead(make_agent("choose_first"), make_host("random"), SPEC, 10)
    state, coords = rho_starts(SPEC, 40, 4), torch.ones(40, 3, dtype=torch.bool)
    some = ahead.act(state, coords, rows(40))
    assert torch.equal(some, ahead.act(state, coords, rows(40)))
    assert not torch.equal(some, ahead.act(state, coords, rows(40).split(1)))
