"""Small labelled positions from a plain recursion, for tests that need some."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import gymnasium
import torch

from resgym.game.actions import action_axes
from resgym.game.plain import Position, canonical, moved, prune
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.ddqn import DDQN
from sb3_ext.studies.teach.examples import Examples
from sb3_ext.studies.teach.measures import optimal_choices
from sb3_ext.studies.teach.train import ENVIRONMENTS
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


class SmallData:
    """A dataset of positions in three axes that are at most `DEEPEST` moves deep.

    Args:
        seat: ``host`` or ``agent``.
        positions: how many different ones, up to the order of the axes.
        seed: fixes them.
    """

    dimension = 3
    max_num_points = 4
    objective = "depth"

    def __init__(self, seat: str = "host", positions: int = 120, seed: int = 0) -> None:
        self.seat = seat
        source = random.Random(seed)
        found: dict[Position, None] = {}
        while len(found) < positions:
            points = [[source.randint(0, 3) for _ in range(3)] for _ in range(source.randint(2, 4))]
            position = canonical(prune(map(tuple, points)))
            if len(position) > 1 and least_depth(position) <= DEEPEST:
                found[position] = None
        rows = [row for position in found for row in self._rows(position)]
        self._parts = {"held_out": rows[::5], "train": [r for i, r in enumerate(rows) if i % 5]}

    def _rows(self, position: Position) -> list[Any]:
        """(points, coords, optimal, value) of a position, one row for each set for the agent."""
        sets = action_axes(3)
        if self.seat == "host":
            depths = [after_set(position, axes, DEEPEST) for axes in sets]
            least = min(depths)
            return [(position, None, [depth == least for depth in depths], least)]
        rows = []
        for axes in sets:
            depths = {
                axis: least_depth(canonical(moved(position, axes, axis)), DEEPEST) for axis in axes
            }
            most = max(depths.values())
            if most <= DEEPEST:
                optimal = [depths.get(axis) == most for axis in range(3)]
                rows.append((position, [axis in axes for axis in range(3)], optimal, most + 1))
        return rows

    def split(self, name: str) -> Examples:
        """As `sb3_ext.studies.teach.dataset` gives a part."""
        rows = self._parts[name]
        points = torch.full((len(rows), self.max_num_points, 3), -1)
        for row, (position, *_) in enumerate(rows):
            points[row, : len(position)] = torch.tensor(sorted(position, reverse=True))
        coords = None if self.seat == "host" else torch.tensor([row[1] for row in rows])
        return Examples(
            points=points,
            count=(points[:, :, 0] >= 0).sum(1),
            coords=coords,
            optimal=torch.tensor([row[2] for row in rows]),
            value=torch.tensor([row[3] for row in rows]),
        )


SMALL = {
    "extractor": "point_pairs",
    "features_extractor_kwargs": {
        "point_net": [16],
        "pair_net": [16],
        "context_net": [32],
        "head_net": [32],
    },
    "net_arch": [32],
    "dueling": True,
}


QUICK = {
    "updates": 60,
    "batch_size": 64,
    "learning_rate": "cos_5e-3_1e-4",
    "evaluation_updates": 20,
    "checkpoint_updates": 20,
    "validation_fraction": 0.1,
}


def make_model(seat="host", seed=0, policy_kwargs=SMALL, learning_rate=1e-4):
    env = gymnasium.make_vec(ENVIRONMENTS[seat], num_envs=2, reward="step")
    policy = {"agent": "AgentPolicy", "host": "HostPolicy"}[seat]
    return DDQN(
        policy, TensorVecEnv(env), seed=seed, policy_kwargs=policy_kwargs, buffer_size=2000,
        learning_starts=64, batch_size=32, device="cpu", learning_rate=learning_rate,
    )  # fmt: skip


def optimal_share(model, examples):
    return float(optimal_choices(player_of(model), examples).double().mean())


def make(seat: str = "host", **arguments: Any) -> DDQN:
    opponent = ["choose_first", "choose_last", "random"] if seat == "host" else "zeillinger"
    game = {"opponent": opponent, "reward": "step", "max_num_points": 5, "max_value": 4}
    env = gymnasium.make_vec(ENVIRONMENTS[seat], num_envs=8, **game)
    return make_ddqn(TensorVecEnv(env), policy=f"{seat.title()}Policy", **arguments)
