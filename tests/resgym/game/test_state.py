"""Positions as tensors: what they are made from, and their vertices against a rational oracle."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from resgym.game.exact import is_vertex
from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from tests.reference import rule
from tests.reference.polyhedron import mean_can_be_below
from tests.reference.rule import EXAMPLE
from tests.resgym.game.point_families import FAMILIES, sample


def forms(points):
    return {
        "list of tuples": points,
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
    """One more than a byte counts: the counters of the pruning must be wide enough."""
    size = 256
    spec = GameSpec(2, size)
    chain = [(size - k, k) for k in range(size)]
    state = state_from_points(random.Random(0).sample(chain, size), spec)
    assert state.count.tolist() == [size]
    assert state.point_lists()[0] == chain
    # One point below all of them, in any row.
    for row in (0, 100, 255):
        points = list(chain)
        points[row] = (0, 0)
        assert state_from_points(points, spec).point_lists() == [[(0, 0)]]


# Sets to compare and their largest size, by dimension; the oracle's time decides. The long test has
# fifty times as many: 100,800.
SETS = {
    **{2: (432, 16), 3: (576, 9), 4: (396, 8), 5: (216, 7), 6: (144, 7)},
    **{7: (72, 7), 8: (72, 6), 9: (54, 6), 10: (54, 6)},
}


@pytest.mark.parametrize("dimension", SETS)
@pytest.mark.parametrize("times", [0.5, pytest.param(50, marks=pytest.mark.long)])
def test_vertices_of_sets_of_all_kinds(dimension, times):
    number = int(SETS[dimension][0] * times)
    size = SETS[dimension][1]
    source = random.Random(f"{times} {dimension}")
    names = sorted(FAMILIES)
    sets = [sample(source, names[k % len(names)], dimension, size) for k in range(number)]
    expected = [rule.canonical(points, "newton") for points in sets]
    spec = GameSpec(dimension, size, polytope="newton")
    assert state_from_points(sets, spec).point_lists() == expected
    # Many points are minimal and yet no vertices.
    minimal = state_from_points(sets, GameSpec(dimension, size)).count.sum()
    assert int(minimal) >= sum(map(len, expected)) + 0.04 * number


@given(st.integers(2, 6), st.integers(1, 100), st.randoms(use_true_random=False))
def test_vertices_in_integers_of_any_size(dimension, bits, source):
    """`is_vertex` knows no bound, also where all other points are far away or equal on axes."""
    gaps = [
        [source.randint(-(2**bits), 2**bits) * source.randint(0, 1) for _ in range(dimension)]
        for _ in range(source.randint(0, 8))
    ]
    others = [tuple(row) for row in gaps if any(row)]
    expected = not (others and mean_can_be_below(others, (0,) * dimension))
    assert is_vertex((0,) * dimension, others) == expected
