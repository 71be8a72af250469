"""Positions as tensors: what they are made from, their canonical layout, and their helpers."""

import random

import numpy as np
import pytest
import torch

from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points

EXAMPLE = [(5, 0, 1), (1, 5, 1), (0, 25, 0), (0, 0, 4)]


def forms(points):
    return {
        "list of tuples": points,
        "tuple": tuple(points),
        "array": np.array(points),
        "small array": np.array(points, dtype=np.uint8),
        "tensor": torch.tensor(points),
        "list of arrays": [np.array(p) for p in points],
        "games": [points],
        "array of games": np.array([points]),
        "padded array": np.array([*points, (-1,) * 3, (-1,) * 3]),
    }


@pytest.mark.parametrize("form", forms(EXAMPLE))
def test_every_form_of_one_game(form):
    state = state_from_points(forms(EXAMPLE)[form], GameSpec())
    assert state.point_lists() == [EXAMPLE]


def test_many_points_of_one_game():
    """More points than a byte counts: the counters of the pruning must be wide enough."""
    size = 300
    spec = GameSpec(2, size)
    chain = [(size - k, k) for k in range(size)]
    state = state_from_points(random.Random(0).sample(chain, size), spec)
    assert state.count.tolist() == [size]
    assert state.point_lists()[0] == chain
    # One point below all of them, in any row.
    for row in (0, 255, 256, size - 1):
        points = list(chain)
        points[row] = (0, 0)
        assert state_from_points(points, spec).point_lists() == [[(0, 0)]]
