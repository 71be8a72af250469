"""What is true of the game (design, section 1), on the tensor rule."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from resgym.game.rules import move
from resgym.game.spec import MAX_COORDINATE, GameSpec
from resgym.game.state import state_from_points
from tests.reference import rule
from tests.resgym.backends import every_backend, get

Moves = list[tuple[tuple[int, ...], int]]


def coords_of(axes, dimension):
    return torch.tensor([[axis in axes for axis in range(dimension)]])


def counts_of(points, spec, moves):
    """Numbers of points after each of the moves."""
    state = state_from_points(points, spec)
    counts = [int(state.count)]
    for axes, axis in moves:
        coords = coords_of(axes, spec.dimension)
        state, overflow = move(state, coords, torch.tensor([axis]), spec)
        assert not bool(overflow)
        counts.append(int(state.count))
    return counts


@st.composite
def games(draw):
    """A start and eight legal moves."""
    dimension = draw(st.integers(2, 5))
    point = st.tuples(*[st.integers(0, 12)] * dimension)
    points = draw(st.lists(point, min_size=1, max_size=10))
    sets = st.sampled_from(rule.host_actions(dimension))
    moves = [(axes, draw(st.sampled_from(axes))) for axes in draw(st.lists(sets, max_size=8))]
    return points, GameSpec(dimension, 12), moves


@given(games(), st.data())
def test_order_of_axes_translation_scaling_and_repositioning_are_free(game, data):
    points, spec, moves = game
    order = data.draw(st.permutations(range(spec.dimension)))
    offset = data.draw(st.tuples(*[st.integers(0, 1000)] * spec.dimension))
    factor = data.draw(st.integers(1, 1000))
    changed = [tuple(factor * (point[k] + offset[k]) for k in order) for point in points]
    mapped = [(tuple(order.index(a) for a in axes), order.index(axis)) for axes, axis in moves]
    other = GameSpec(spec.dimension, spec.max_num_points, reposition=data.draw(st.booleans()))
    assert counts_of(points, spec, moves) == counts_of(changed, other, mapped)


@given(games())
def test_dominance_keeps_a_superset_of_the_vertices_with_the_same_end(game):
    points, spec, moves = game
    state, vertices = state_from_points(points, spec), rule.canonical(points, "newton")
    for axes, axis in moves:
        assert set(vertices) <= set(state.point_lists()[0])
        assert bool(state.finished()) == rule.is_finished(vertices)
        state, _ = move(state, coords_of(axes, spec.dimension), torch.tensor([axis]), spec)
        vertices = rule.move(vertices, axes, axis, "newton")


@pytest.mark.parametrize("dimension", [2, 3, 10])
@every_backend
def test_overflow_is_flagged_keeps_the_state_and_never_wraps(backend, dimension):
    spec = GameSpec(dimension, 4)
    every = tuple(range(dimension))
    fits = [(MAX_COORDINATE - (dimension - 1), *[1] * (dimension - 1)), (0, 2, *[0] * dimension)]
    passes = [(MAX_COORDINATE - (dimension - 2), *[1] * (dimension - 1)), (0, 2, *[0] * dimension)]
    # All coordinates at the bound: the sum is D * 2^59, the most that is ever computed.
    most = [(MAX_COORDINATE,) * (dimension - 1) + (0,), (0,) * (dimension - 1) + (MAX_COORDINATE,)]
    games = [[point[:dimension] for point in game] for game in (fits, passes, most, fits[:1])]
    state = state_from_points(games, spec)
    assert state.count.tolist() == [2, 2, 2, 1]
    coords = coords_of(every, dimension).expand(4, -1)
    after, overflow = get(backend, spec).move(
        state, coords, torch.zeros(4, dtype=torch.int64), spec
    )
    expected = [rule.overflows(points, every, 0) for points in state.point_lists()]
    assert overflow.tolist() == expected == [False, True, dimension > 2, False]
    assert after.point_lists() == [rule.move(p, every, 0) for p in state.point_lists()]
    assert after.point_lists()[1] == state.point_lists()[1]
    assert int(after.points.max()) == MAX_COORDINATE
