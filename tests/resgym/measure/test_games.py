"""Whole games between two players: lengths in batches, records, and players that look ahead."""

import pytest
import torch

from resgym.envs.environments import HironakaVectorEnv
from resgym.game.rng import RowRandom, Stream
from resgym.game.rules import random_starts
from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from resgym.measure.games import Ahead, play_lengths
from resgym.measure.rho import rho_starts
from resgym.players import make_agent, make_host
from tests.reference import players as reference
from tests.reference import rule
from tests.resgym.games import random_rows as rows
from tests.resgym.games import record_game

SPEC = GameSpec(3, 8, 9)


def test_games_use_the_random_numbers_of_the_environments():
    """Half-move h draws from step h, so that an environment plays the very same game."""
    env = HironakaVectorEnv(12, max_episode_steps=None, max_num_points=8, max_value=9)
    env.reset(seed=0)
    rng = rows(12)
    starts = random_starts(SPEC, rng.at(0, Stream.START))
    assert torch.equal(env.games.points, starts.points)
    expected = play_lengths(make_host("random"), make_agent("random"), starts, SPEC, rng, 40)
    moves = torch.zeros(12, dtype=torch.int64)
    going = torch.ones(12, dtype=torch.bool)
    players = (make_host("random"), Stream.HOST), (make_agent("random"), Stream.AGENT)
    for _ in range(40):
        for player, stream in players:
            games = env.games
            axis = player.act(games.position, games.coords, games.rng(stream))
            _, _, terminated, _, _ = env.step(axis)
        moves += going
        going &= ~terminated  # what follows is another game
    assert torch.equal(moves, expected.moves)


def test_a_recorded_game_is_legal_move_by_move():
    for seed in range(15):
        start = random_starts(SPEC, RowRandom(torch.tensor([seed])))
        record = record_game("random", "random", start, SPEC, seed=seed)
        assert record.positions[0] == start.point_lists()[0]
        assert len(record.positions) == len(record.axes) + 1 == len(record.axis) + 1
        for number, (axes, axis) in enumerate(zip(record.axes, record.axis, strict=True)):
            assert rule.is_legal(axes, axis)
            expected = rule.move(record.positions[number], axes, axis)
            assert record.positions[number + 1] == expected
        assert record.finished == rule.is_finished(record.positions[-1])
        assert all(not rule.is_finished(points) for points in record.positions[:-1])


def test_a_recorded_game_stops_at_the_limit_and_before_an_overflow():
    endless = state_from_points([(0, 1, 0), (0, 0, 1)], SPEC)
    record = record_game("all_coord", "choose_first", endless, SPEC, max_moves=5)
    assert (len(record.axes), record.finished) == (5, False)
    assert str(record).endswith("stopped after 5 moves")
    huge = state_from_points([(2**59, 1, 0), (0, 2, 1)], SPEC)
    record = record_game("all_coord", "choose_first", huge, SPEC)
    assert (record.axes, record.finished) == ([], False)
    with pytest.raises(ValueError, match="max_moves must be at least 1, got 0"):
        record_game("all_coord", "choose_first", huge, SPEC, max_moves=0)


SMALL = GameSpec(3, 4, 8)


def test_an_agent_that_looks_ahead_takes_the_longest_game():
    agent = Ahead(make_agent("choose_last"), make_host("zeillinger"), SMALL, 30)
    state = rho_starts(SMALL, 50, 4)
    sets = torch.tensor([[True, True, True], [True, False, True]])[torch.arange(50) % 2]
    answers = agent.act(state, sets, rows(50)).tolist()
    for points, coords, answer in zip(state.point_lists(), sets.tolist(), answers, strict=True):
        axes = tuple(axis for axis in range(3) if coords[axis])
        after = [rule.move(points, axes, axis) for axis in axes]
        lengths = [reference.play("zeillinger", "choose_last", each, 30)[0] for each in after]
        longest = [k for k, length in zip(axes, lengths, strict=True) if length == max(lengths)]
        assert answer == (axes[-1] if axes[-1] in longest else longest[0])
    assert sum(answer != 2 for answer in answers) > 5


def test_a_host_that_looks_ahead_takes_the_shortest_game():
    host = Ahead(make_host("zeillinger"), make_agent("choose_first"), SMALL, 30)
    state = rho_starts(SMALL, 40, 4)
    actions = rule.host_actions(3)
    answers = host.act(state, None, rows(40)).tolist()
    for points, answer in zip(state.point_lists(), answers, strict=True):
        after = [rule.move(points, axes, reference.choose_first(points, axes)) for axes in actions]
        lengths = [reference.play("zeillinger", "choose_first", each, 30)[0] for each in after]
        best = [k for k, length in enumerate(lengths) if length == min(lengths)]
        named = actions.index(reference.zeillinger(points))
        assert answer == (named if named in best else best[0])


def test_looking_ahead_does_not_know_what_will_be_drawn():
    """The random numbers of the rollouts are others: knowing them would win more."""
    ahead = Ahead(make_agent("choose_first"), make_host("random"), SMALL, 10)
    state = rho_starts(SMALL, 40, 4)
    coords = torch.ones(40, 3, dtype=torch.bool)
    some = ahead.act(state, coords, rows(40))
    assert torch.equal(some, ahead.act(state, coords, rows(40)))
    assert not torch.equal(some, ahead.act(state, coords, rows(40).split(1)))
