"""One recorded game, for tests."""

import torch

from resgym.game.rng import RowRandom
from resgym.measure.games import record_all


def record_game(host, agent, start, spec, *, seed=0, max_moves=200):
    """Record one game from a state of one game; ``seed`` is for players that draw."""
    rng = RowRandom.for_episode(torch.full_like(start.count, seed), torch.zeros_like(start.count))
    return record_all(host, agent, start, spec, rng, max_moves)[0]
