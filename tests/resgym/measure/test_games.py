"""Whole games between two players: lengths in batches, and one game kept move by move."""

import pytest
import torch

from resgym.envs.environments import HironakaVectorEnv
from resgym.game.rng import RowRandom, Stream
from resgym.game.rules import random_starts
from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from resgym.measure.games import play_lengths
from resgym.players import make_agent, make_host
from tests.reference import rule
from tests.resgym.games import record_game

SPEC = GameSpec(3, 8, 9)
EXAMPLE = [(5, 0, 1), (1, 5, 1), (0, 25, 0), (0, 0, 4)]


def batch(num_games, episode=0):
    row = torch.arange(num_games)
    rng = RowRandom.for_episode(row, torch.full_like(row, episode))
    return random_starts(SPEC, rng.at(0, Stream.START)), rng


def test_games_use_the_random_numbers_of_the_environments():
    """Half-move h draws from step h, so that an environment plays the very same game."""
    env = HironakaVectorEnv(12, max_episode_steps=None, max_num_points=8, max_value=9)
    env.reset(seed=0)
    starts, rng = batch(12)
    assert torch.equal(env.games.points, starts.points)
    expected = play_lengths(make_host("random"), make_agent("random"), starts, SPEC, rng, 40)
    moves, going = torch.zeros(12, dtype=torch.int64), torch.ones(12, dtype=torch.bool)
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
