"""What a player sees, against the reference's exact fractions."""

import gymnasium
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import resgym  # noqa: F401  registers the environments
from resgym.game.rules import observe_points
from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from tests.reference import rule
from tests.resgym.backends import every_backend, get


def floats_of(points, size, dimension, scale=True):
    # float(Fraction) is the correctly rounded double, which is then rounded once more.
    expected = rule.observed(rule.canonical(points), size, dimension, scale)
    return [[float(np.float32(float(x))) for x in row] for row in expected]


@given(st.lists(st.tuples(*[st.integers(0, 2**40)] * 3), min_size=1, max_size=6), st.booleans())
def test_every_entry_is_the_nearest_float_of_the_fraction(points, scale):
    seen = observe_points(state_from_points(points, GameSpec(3, 8)), scale)
    assert seen.dtype == torch.float32
    assert seen[0].tolist() == floats_of(points, 8, 3, scale)


@every_backend
@pytest.mark.parametrize(
    "largest", [3, 7, 10, 21, 2**12 - 1, 2**24 - 3, 2**24 - 1, 2**24, 2**24 + 1, 2**40 + 1]
)
def test_quotients_have_the_bits_of_the_fraction_around_what_a_float_holds(backend, largest):
    """What is seen after a step that changes nothing."""
    get(backend, GameSpec())  # or skips
    source = np.random.default_rng(largest)
    drawn = {0, *(int(x) for x in source.integers(0, largest, 198, endpoint=True)), largest}
    points = [(x, largest - x) for x in drawn]
    options = {"dimension": 2, "max_num_points": 200, "invalid_action": "noop"}
    env = gymnasium.make_vec("resgym/HironakaHost-v0", 1, backend=backend, **options)
    env.reset(options={"points": points})
    assert env.step([7])[0][0].tolist() == floats_of(points, 200, 2)
