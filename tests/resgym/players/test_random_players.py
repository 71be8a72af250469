"""Players that draw: uniform over what they may choose, and different from row to row."""

import pytest
import torch

from resgym.game.rng import RowRandom, Stream
from resgym.game.rules import random_starts
from resgym.game.spec import GameSpec, action_axes, host_action_table
from resgym.players import make_agent, make_host

NUM_GAMES = 20_000
ROW = torch.arange(NUM_GAMES)
RNG = RowRandom.for_episode(ROW, ROW * 0).at(ROW * 0, Stream.HOST)


def _assert_uniform(counts):
    """Pearson's statistic is below its mean plus six standard deviations."""
    expected = counts.sum() / len(counts)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    freedom = len(counts) - 1
    assert statistic < freedom + 6 * (2 * freedom) ** 0.5 + 6, counts.tolist()


@pytest.mark.parametrize("dimension", [2, 4])
@pytest.mark.parametrize("name", ["random", "random_pair"])
def test_random_hosts_are_uniform_over_their_sets(name, dimension):
    state = random_starts(GameSpec(dimension=dimension, max_num_points=3), RNG.split(1))
    sets = action_axes(dimension)
    counts = make_host(name).act(state, None, RNG).bincount(minlength=len(sets))
    assert len(counts) == len(sets)
    allowed = torch.tensor([name == "random" or len(axes) == 2 for axes in sets])
    assert int(counts[~allowed].sum()) == 0
    _assert_uniform(counts[allowed])


def test_random_agent_is_uniform_over_the_hosts_set():
    state = random_starts(GameSpec(max_num_points=3), RNG.split(1))
    for axes in host_action_table(3)[::3]:
        answers = make_agent("random").act(state, axes.expand(NUM_GAMES, 3), RNG)
        counts = answers.bincount(minlength=3)
        assert int(counts[~axes].sum()) == 0
        _assert_uniform(counts[axes])
