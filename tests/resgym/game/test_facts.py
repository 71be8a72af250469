"""What is true of the game (design, section 1), on the tensor rule."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from resgym.game.rules import move
from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from tests.reference import rule

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
