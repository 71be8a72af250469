"""The JAX peer plays the same game: against the reference in plain Python, where JAX is there."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference import rule

jax = pytest.importorskip("jax", reason="the JAX peer needs JAX")
jnp = jax.numpy
from benchmarks import jax_step  # noqa: E402


def padded(points: rule.Position, rows: int, dimension: int) -> np.ndarray:
    table = np.full((rows, dimension), -1, dtype=np.int64)
    table[: len(points)] = points
    return table


def position(table) -> rule.Position:
    return [tuple(int(x) for x in row) for row in np.asarray(table) if row[0] >= 0]


def observed(points: rule.Position, rows: int, dimension: int) -> np.ndarray:
    return np.array(rule.observed(points, rows, dimension), np.float64).astype(np.float32)


@pytest.mark.parametrize("dimension", [2, 3, 5])
def test_moves_and_observations_as_in_the_reference(dimension):
    rows, games = 7, 240 // dimension  # two axes end the game soonest
    rng = np.random.default_rng(dimension)
    # Few values, so that equal coordinates and covered points are common.
    starts = [
        rule.canonical([tuple(p) for p in rng.integers(0, 4, size=(rows, dimension)).tolist()])
        for _ in range(games)
    ]
    sets = rule.host_actions(dimension)
    assert [tuple(np.flatnonzero(row)) for row in np.asarray(jax_step.host_sets(dimension))] == sets
    move, observe = jax.jit(jax.vmap(jax_step.move)), jax.jit(jax.vmap(jax_step.observed))
    current, compared = starts, 0
    for _ in range(12):
        actions = rng.integers(len(sets), size=games)
        axes = [sets[action] for action in actions]
        axis = [int(rng.choice(each)) for each in axes]
        tables = jnp.asarray(np.stack([padded(each, rows, dimension) for each in current]))
        after, overflow = move(tables, jax_step.host_sets(dimension)[actions], jnp.asarray(axis))
        seen = np.asarray(observe(after))
        expected = [rule.move(*each) for each in zip(current, axes, axis, strict=True)]
        for row, points in enumerate(expected):
            if len(current[row]) > 1:  # a finished game is never moved: it is replaced
                assert position(after[row]) == points
                np.testing.assert_array_equal(seen[row], observed(points, rows, dimension))
                compared += 1
        assert not np.asarray(overflow).any()
        current = expected
    assert compared > 25


def test_a_move_past_the_bound_is_refused():
    points = [(2**59, 1), (1, 2**58)]
    assert rule.overflows(points, (0, 1), 0)
    after, overflow = jax_step.move(
        jnp.asarray(padded(points, 3, 2)), jnp.array([True, True]), jnp.asarray(0)
    )
    assert bool(overflow)
    assert position(after) == points


def test_whole_steps_end_restart_and_reward():
    dimension, rows, games = 3, 6, 50
    sets = jax_step.host_sets(dimension)
    state = jax_step.reset(0, games, rows, dimension)
    rng = np.random.default_rng(0)
    ends, axes_seen = 0, set()
    for _ in range(15):
        before = [position(each) for each in state.points]
        assert all(rule.canonical(each) == each and len(each) > 1 for each in before)
        moves = np.asarray(state.moves)
        actions = rng.integers(len(sets), size=games)
        state, results = jax_step.step(sets, state, jnp.asarray(actions))
        seen, reward, terminated, truncated, final = map(np.asarray, results)
        for row in range(games):
            axes = tuple(np.flatnonzero(np.asarray(sets[actions[row]])))
            answers = {axis: rule.move(before[row], axes, axis) for axis in axes}
            tables = {axis: observed(answers[axis], rows, dimension) for axis in axes}
            played = [axis for axis in axes if (tables[axis] == final[row]).all()]
            axes_seen.add((len(axes), axes.index(played[0])))
            finished = len(answers[played[0]]) == 1
            assert terminated[row] == reward[row] == finished
            assert state.moves[row] == (0 if finished else moves[row] + 1)
            now = position(state.points[row])
            if finished:
                ends += 1
                assert max(map(max, now)) <= jax_step.MAX_VALUE
            else:
                assert now == answers[played[0]] or len(played) > 1
                np.testing.assert_array_equal(seen[row], final[row])
        assert not truncated.any()
    assert ends > 20
    assert axes_seen >= {(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)}


def test_a_long_game_is_truncated():
    state = jax_step.reset(0, 4, 6, 3)
    state = state._replace(moves=state.moves.at[0].set(jax_step.MAX_STEPS - 1))
    state, results = jax_step.step(jax_step.host_sets(3), state, jnp.zeros(4, jnp.int64))
    _, _, terminated, truncated, _ = map(np.asarray, results)
    assert truncated[0] == (not terminated[0])
    assert not truncated[1:].any()
    assert state.moves[0] == 0
