"""Newton vertices against the rational oracle, on hard sets above all."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resgym.game.exact import is_vertex
from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from tests.reference import rule
from tests.reference.polyhedron import mean_can_be_below
from tests.resgym.game.point_families import FAMILIES, sample

# Sets to compare and their largest size, by dimension; the oracle's time decides. The long test has
# fifty times as many: 100,800.
SETS = {
    **{2: (432, 16), 3: (576, 9), 4: (396, 8), 5: (216, 7), 6: (144, 7)},
    **{7: (72, 7), 8: (72, 6), 9: (54, 6), 10: (54, 6)},
}


def vertices_of(sets, dimension):
    spec = GameSpec(dimension, max(map(len, sets)), polytope="newton")
    return state_from_points(sets, spec).point_lists()


@pytest.mark.parametrize("dimension", SETS)
@pytest.mark.parametrize("times", [0.5, pytest.param(50, marks=pytest.mark.long)])
def test_sets_of_all_kinds(dimension, times):
    number, size = int(SETS[dimension][0] * times), SETS[dimension][1]
    source, names = random.Random(f"{times} {dimension}"), sorted(FAMILIES)
    sets = [sample(source, names[k % len(names)], dimension, size) for k in range(number)]
    expected = [rule.canonical(points, "newton") for points in sets]
    assert vertices_of(sets, dimension) == expected
    # Many points are minimal and yet no vertices.
    minimal = state_from_points(sets, GameSpec(dimension, size)).count.sum()
    assert int(minimal) >= sum(map(len, expected)) + 0.04 * number


@given(st.integers(2, 6), st.integers(1, 100), st.randoms(use_true_random=False))
def test_integers_of_any_size(dimension, bits, source):
    """`is_vertex` knows no bound, also where all other points are far away or equal on axes."""
    gaps = [
        [source.randint(-(2**bits), 2**bits) * source.randint(0, 1) for _ in range(dimension)]
        for _ in range(source.randint(0, 8))
    ]
    others = [tuple(row) for row in gaps if any(row)]
    expected = not (others and mean_can_be_below(others, (0,) * dimension))
    assert is_vertex((0,) * dimension, others) == expected
