"""What a player sees, against the reference's exact fractions."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from resgym.game.rules import observe_points
from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from tests.reference import rule
from tests.resgym.backends import every_backend, get


@every_backend
def test_layout_by_hand(backend):
    spec = GameSpec(3, 4)
    observe = get(backend, spec).observe_points
    state = state_from_points([[(0, 2, 1), (4, 0, 0)], [(0, 0, 0)]], spec)
    assert observe(state, True).tolist() == [
        [[1, 0, 0], [0, 0.5, 0.25], [-1, -1, -1], [-1, -1, -1]],
        [[0, 0, 0], [-1, -1, -1], [-1, -1, -1], [-1, -1, -1]],
    ]
    assert observe(state, False)[0].tolist() == [[4, 0, 0], [0, 2, 1], [-1, -1, -1], [-1, -1, -1]]


@given(st.lists(st.tuples(*[st.integers(0, 2**40)] * 3), min_size=1, max_size=6), st.booleans())
def test_every_entry_is_the_nearest_float_of_the_fraction(points, scale):
    state = state_from_points(points, GameSpec(3, 8))
    seen = observe_points(state, scale)
    assert seen.dtype == torch.float32
    expected = rule.observed(rule.canonical(points), 8, 3, scale)
    # float(Fraction) is the correctly rounded double, which is then rounded once more.
    assert seen[0].tolist() == [[float(np.float32(float(x))) for x in row] for row in expected]


@every_backend
@pytest.mark.parametrize(
    "largest", [3, 7, 10, 21, 2**12 - 1, 2**24 - 3, 2**24 - 1, 2**24, 2**24 + 1, 2**40 + 1]
)
def test_quotients_have_the_bits_of_the_fraction_around_what_a_float_holds(backend, largest):
    source = np.random.default_rng(largest)
    spec = GameSpec(2, 600)
    drawn = {0, *(int(x) for x in source.integers(0, largest, 599, endpoint=True))}
    points = [(x, largest - x) for x in drawn]
    seen = get(backend, spec).observe_points(state_from_points(points, spec), True)
    expected = rule.observed(rule.canonical(points), 600, 2)
    assert seen[0].tolist() == [[float(np.float32(float(x))) for x in row] for row in expected]
