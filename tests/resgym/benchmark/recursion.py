"""Small solved positions from a plain recursion, which shares no code with the solver."""

from __future__ import annotations

import random
from functools import cache

import torch

from resgym.benchmark import Solved
from resgym.game.actions import action_axes
from tests.reference.rule import Position, minimal_points, move

DEEPEST = 6


@cache
def least_depth(position: tuple[tuple[int, ...], ...], limit: int = DEEPEST) -> int:
    """The least depth of a position, or limit + 1 if it is more than the limit."""
    if len(position) == 1:
        return 0
    if limit == 0:
        return 1
    best = limit + 1
    for axes in action_axes(len(position[0])):
        worst = 0
        for axis in axes:
            if worst < best - 1:
                worst = max(worst, least_depth(after(position, axes, axis), best - 2))
        best = min(best, worst + 1)
    return best


def after(position: Position, axes: tuple[int, ...], axis: int) -> tuple[tuple[int, ...], ...]:
    """The position after a move."""
    return tuple(move([*position], axes, axis))


def values(position: Position) -> list[list[int]]:
    """The least depth after every set and axis, -1 for axes outside the set."""
    return [
        [least_depth(after(position, axes, axis)) if axis in axes else -1 for axis in range(3)]
        for axes in action_axes(3)
    ]


def small(positions: int = 60, seed: int = 0) -> Solved:
    """Positions in three axes, at most `DEEPEST` moves deep after every move."""
    source = random.Random(seed)
    found: dict[tuple[tuple[int, ...], ...], list[list[int]]] = {}
    while len(found) < positions:
        points = [
            tuple(source.randint(0, 3) for _ in range(3)) for _ in range(source.randint(2, 4))
        ]
        position = tuple(sorted(minimal_points(points), reverse=True))
        if len(position) > 1 and max(map(max, values(position))) <= DEEPEST:
            found[position] = values(position)
    drawn = torch.full((positions, 4, 3), -1)
    for row, position in enumerate(found):
        drawn[row, : len(position)] = torch.tensor(position)
    costs = torch.tensor([*found.values()])
    return Solved(
        points=drawn,
        count=(drawn[:, :, 0] >= 0).sum(1),
        split=2 * (torch.arange(positions) % 5 > 0),
        costs=1 + costs.amax(2),
        after=costs,
    )
