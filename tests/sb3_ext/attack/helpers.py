"""Small budgets, and a player that is weak in a known way."""

import torch

import resgym

SMALL = [
    *("name=small", "game.max_num_points=3", "game.max_value=6", "game.max_moves=40"),
    *("seeds=[0]", "updates=4", "every=2", "learner.n_envs=16", "learner.learning_starts=64"),
    *("learner.batch_size=16", "learner.buffer_size=2000", "learner.policy_kwargs.net_arch=[16]"),
    *("lookahead=0", "validation.games=40", "test.games=100", "exact.starts=10"),
    *("agents=[choose_first, random]", "hosts=[random, zeillinger]"),
]
LESS = [part for setting in SMALL for part in ("--set", setting)]


def trap(state, coords, rng):
    """Zeillinger's host with one hole: it names all axes, again and again, once axis 1 is ahead.

    Then an agent that keeps to axis 1 is never done, since every point moves up by the same rule.
    Scripted agents that keep to the first or the last axis of a set do not get there often.
    """
    answer = resgym.make_host("zeillinger").act(state, coords, rng)
    absent = state.points[:, :, :1] < 0
    highest = state.points.masked_fill(absent, 0).amax(1)
    ahead = highest[:, 1] > highest[:, 0] + highest[:, 2]
    return torch.where(ahead, 3, answer)
