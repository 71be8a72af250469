"""Small positions as the reference solves them, which shares no code with the solver."""

import random

import torch

from resgym.benchmark import Solved
from resgym.game.spec import action_axes
from tests.reference.depth import Depth
from tests.reference.rule import minimal_points, move

DEEPEST = 6
REFERENCE = Depth()


def values(position):
    """The least depth after every set and axis, -1 for axes outside the set."""
    found = [[-1] * 3 for _ in action_axes(3)]
    for row, axes in zip(found, action_axes(3), strict=True):
        for axis in axes:
            row[axis] = REFERENCE.value(move([*position], axes, axis))
    return found


def small(positions=60, seed=0):
    """Positions in three axes, at most `DEEPEST` moves deep after every move."""
    source = random.Random(seed)
    found = {}
    while len(found) < positions:
        number = source.randint(2, 4)
        points = [tuple(source.randint(0, 3) for _ in range(3)) for _ in range(number)]
        position = tuple(sorted(minimal_points(points), reverse=True))
        if len(position) > 1 and max(map(max, values(position))) <= DEEPEST:
            found[position] = values(position)
    drawn = torch.full((positions, 4, 3), -1)
    for row, position in enumerate(found):
        drawn[row, : len(position)] = torch.tensor(position)
    after = torch.tensor([*found.values()])
    count, split = (drawn[:, :, 0] >= 0).sum(1), 2 * (torch.arange(positions) % 5 > 0)
    return Solved(points=drawn, count=count, split=split, costs=1 + after.amax(2), after=after)
