"""Small positions as the reference solves them, which shares no code with the solver."""

import random

import torch

from resgym.benchmark import Solved
from resgym.game.actions import action_axes
from tests.reference.depth import Depth
from tests.reference.rule import minimal_points, move

DEEPEST = 6
REFERENCE = Depth()


def values(position):
    """The least depth after every set and axis, -1 for axes outside the set."""
    return [
        [
            REFERENCE.value(move([*position], axes, axis)) if axis in axes else -1
            for axis in range(3)
        ]
        for axes in action_axes(3)
    ]


def small(positions=60, seed=0):
    """Positions in three axes, at most `DEEPEST` moves deep after every move."""
    source = random.Random(seed)
    found = {}
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
