"""A recorded game and a best answer, for tests."""

import torch

from resgym.game.rng import RowRandom
from resgym.game.spec import action_axes
from resgym.measure.games import record_all
from resgym.solver.solve import solve


def random_rows(number):
    """The random numbers of the first games of the rows seeded 0, 1, 2, ..."""
    return RowRandom.for_episode(torch.arange(number), torch.zeros(number, dtype=torch.int64))


def record_game(host, agent, start, spec, *, seed=0, max_moves=200):
    """Record one game from a state of one game; ``seed`` is for players that draw."""
    rng = RowRandom.for_episode(torch.full_like(start.count, seed), torch.zeros_like(start.count))
    return record_all(host, agent, start, spec, rng, max_moves)[0]


def best_against_first(state, coords, rng):
    """Begin shortest games against the agent choose_first."""
    trees = [solve(points, agent="choose_first").tree for points in state.point_lists()]
    sets = action_axes(state.points.shape[2])
    return torch.tensor([sets.index(tuple(tree.root.axes or (0, 1))) for tree in trees])
