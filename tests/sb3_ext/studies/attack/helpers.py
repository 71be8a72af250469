"""Small budgets, and players that are weak in a known way."""

from __future__ import annotations

from typing import Any

import torch

import resgym
from sb3_ext.studies.attack import AttackBudget, read_budget

SMALL = [
    *("name=small", "game.max_num_points=3", "game.max_value=6", "game.max_moves=40"),
    *("responder.seeds=[0]", "responder.updates=4", "responder.num_envs=16"),
    *("responder.learning_starts=64", "responder.batch_size=16", "responder.buffer_size=2000"),
    *("responder.net_arch=[16]", "responder.lookahead_moves=0", "validation.every_updates=2"),
    *("validation.games=40", "test.games=100", "exact.starts=10"),
    *("scripted.agents=[choose_first, random]", "scripted.hosts=[random, zeillinger]"),
]


def small(*settings: str) -> AttackBudget:
    """A budget for an attack that takes a moment."""
    return read_budget("points5", [*SMALL, *settings])


def trap(state: Any, coords: Any, rng: Any) -> torch.Tensor:
    """Zeillinger's host with one hole: it names all axes, again and again, once axis 1 is ahead.

    Then an agent that keeps to axis 1 is never done, since every point moves up by the same rule.
    Scripted agents that keep to the first or the last axis of a set do not get there often.
    """
    answer = resgym.make_host("zeillinger").act(state, coords, rng)
    absent = state.points[:, :, :1] < 0
    highest = state.points.masked_fill(absent, 0).amax(1)
    ahead = highest[:, 1] > highest[:, 0] + highest[:, 2]
    return torch.where(ahead, 3, answer)
