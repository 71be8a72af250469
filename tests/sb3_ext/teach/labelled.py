"""Small labelled positions from a plain recursion, for tests that need some."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import torch

from resgym.game.actions import action_axes
from resgym.game.plain import Position, canonical, moved, prune
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.ddqn import DDQN
from sb3_ext.teach.solved import Solved
from tests.sb3_ext.ddqn.helpers import make_model as make_ddqn

DEEPEST = 6


@cache
def least_depth(position: Position, limit: int = DEEPEST) -> int:
    """The least depth of a canonical position, or limit + 1 if it is more than the limit."""
    if len(position) == 1:
        return 0
    if limit == 0:
        return 1
    best = limit + 1
    for axes in action_axes(len(position[0])):
        worst = after_set(position, axes, best - 2)
        best = min(best, worst)
    return best


def after_set(position: Position, axes: tuple[int, ...], limit: int) -> int:
    """The depth if the host plays this set first, or limit + 2 if it is above limit + 1."""
    worst = 0
    for axis in axes:
        if limit < 0:
            return limit + 2
        worst = max(worst, least_depth(canonical(moved(position, axes, axis)), limit))
        if worst > limit:
            return limit + 2
    return worst + 1


def rows_of(position: Position, seat: str) -> list[Any]:
    """(points, coords, optimal, value) of a position, one row for each set for the agent."""
    sets = action_axes(3)
    if seat == "host":
        depths = [after_set(position, axes, DEEPEST) for axes in sets]
        least = min(depths)
        return [(position, [], [depth == least for depth in depths], least)]
    rows = []
    for axes in sets:
        depths_of = {
            axis: least_depth(canonical(moved(position, axes, axis)), DEEPEST) for axis in axes
        }
        most = max(depths_of.values())
        if most <= DEEPEST:
            optimal = [depths_of.get(axis) == most for axis in range(3)]
            rows.append((position, [axis in axes for axis in range(3)], optimal, most + 1))
    return rows


def small(seat: str = "host", positions: int = 120, seed: int = 0) -> Solved:
    """Positions in three axes that are at most `DEEPEST` moves deep, by plain recursion."""
    source = random.Random(seed)
    found: dict[Position, None] = {}
    while len(found) < positions:
        points = [[source.randint(0, 3) for _ in range(3)] for _ in range(source.randint(2, 4))]
        position = canonical(prune(map(tuple, points)))
        if len(position) > 1 and least_depth(position) <= DEEPEST:
            found[position] = None
    rows = [row for position in found for row in rows_of(position, seat)]
    drawn = torch.full((len(rows), 4, 3), -1)
    for row, (position, *_) in enumerate(rows):
        drawn[row, : len(position)] = torch.tensor(sorted(position, reverse=True))
    return Solved(
        points=drawn,
        count=(drawn[:, :, 0] >= 0).sum(1),
        coords=torch.tensor([row[1] for row in rows], dtype=torch.bool).view(len(rows), -1),
        held_out=torch.arange(len(rows)) % 5 == 0,
        optimal=torch.tensor([row[2] for row in rows]),
        value=torch.tensor([row[3] for row in rows]),
    )


def make(seat: str = "host", **arguments: Any) -> DDQN:
    opponent = ["choose_first", "choose_last", "random"] if seat == "host" else "zeillinger"
    game = {"opponent": opponent, "reward": "step", "max_num_points": 5, "max_value": 4}
    env = gymnasium.make_vec(f"resgym/Hironaka{seat.title()}-v0", num_envs=8, **game)
    return make_ddqn(TensorVecEnv(env), policy=f"{seat.title()}Policy", **arguments)


NETWORK = """
default:
  policy: {seat}Policy
  n_timesteps: 1000
  gamma: 0.97
  env_kwargs: {{reward: step}}
  policy_kwargs:
    extractor: point_pairs
    features_extractor_kwargs:
      {{point_net: [16], pair_net: [16], context_net: [32], head_net: [32]}}
    net_arch: [32]
    dueling: true
"""


def config(folder: Path, seat: str = "host") -> dict[str, Any]:
    """Few positions, a small network, a few updates of each of two rounds."""
    file = folder / f"{seat}.yml"
    file.write_text(NETWORK.format(seat=seat.title()))
    start = {"points": [2, 4], "max_value": [3], "positions": 60}
    met = {"positions": 20, "points": [4, 4], "max_value": [4]}
    game = {"hosts": ["student"], "moves": [0, 6]}
    if seat == "agent":
        game = {"hosts": ["zeillinger", "random"], "agents": ["student"], "moves": [0, 6]}
    return {
        "seat": seat,
        "dimension": 3,
        "budget": 2000,
        "rounds": [[start], [{**met, **game}]],
        "algorithm": str(file),
        "updates": 20,
        "batch_size": 32,
        "learning_rate": "cos_5e-3_1e-4",
        "temperature": 0.1,
        "value_weight": 0.3,
        "max_grad_norm": 10.0,
        "every": 10,
        "seed": 0,
    }
