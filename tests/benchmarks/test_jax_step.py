"""The JAX peer plays the same game: against the reference in plain Python, where JAX is there."""

import numpy as np
import pytest

from tests.reference import rule

jax = pytest.importorskip("jax", reason="the JAX peer needs JAX")
jnp = jax.numpy
from benchmarks import jax_step  # noqa: E402

ROUNDED = {"rtol": 2e-7, "atol": 0}  # XLA divides by multiplying with a rounded inverse


def tables(positions, rows, dimension):
    """int32 `[D, P, N]`."""
    found = np.full((len(positions), rows, dimension), jax_step.ABSENT, dtype=np.int32)
    for row, points in enumerate(positions):
        found[row, : len(points)] = points
    return jnp.asarray(found.T)


def positions(points):
    """Present points of `[D, P, N]`, in descending order: the peer keeps none."""
    return [
        sorted((tuple(map(int, p)) for p in table if p[0] < jax_step.ABSENT), reverse=True)
        for table in np.asarray(points).transpose(2, 1, 0)
    ]


def observed(points, rows, dimension):
    return np.array(rule.observed(points, rows, dimension), np.float64).astype(np.float32)


def in_order(seen):
    """Rows of one observation in descending order."""
    return np.array(sorted(map(tuple, seen), reverse=True), np.float32)


def sets_of(dimension):
    """The axes of the peer's host actions."""
    numbers = np.asarray(jax_step.host_sets(dimension)).tolist()
    return [tuple(a for a in range(dimension) if n >> a & 1) for n in numbers]


def flags(axes, dimension):
    """bool `[D, N]`."""
    return jnp.array([[axis in each for each in axes] for axis in range(dimension)])


@pytest.mark.parametrize("dimension", [2, 3, 5])
def test_moves_and_observations_as_in_the_reference(dimension):
    rows, games = 7, 240 // dimension  # two axes end the game soonest
    rng = np.random.default_rng(dimension)
    # Few values, so that equal coordinates and covered points are common.
    current = [
        rule.canonical([tuple(p) for p in rng.integers(0, 4, size=(rows, dimension)).tolist()])
        for _ in range(games)
    ]
    sets = rule.host_actions(dimension)
    assert sets_of(dimension) == sets
    move, observe, compared = jax.jit(jax_step.move), jax.jit(jax_step.observed), 0
    points = tables(current, rows, dimension)
    for _ in range(12):
        axes = [sets[action] for action in rng.integers(len(sets), size=games)]
        axis = [int(rng.choice(each)) for each in axes]
        chosen = flags([(each,) for each in axis], dimension)
        points, overflow = move(points, flags(axes, dimension), chosen)
        seen, found = np.asarray(observe(points)), positions(points)
        expected = [rule.move(*each) for each in zip(current, axes, axis, strict=True)]
        for row, after in enumerate(expected):
            if len(current[row]) > 1:  # a finished game is never moved: it is replaced
                assert found[row] == after
                wanted = observed(after, rows, dimension)
                np.testing.assert_allclose(in_order(seen[row]), wanted, **ROUNDED)
                compared += 1
        assert not np.asarray(overflow).any()
        current = expected
    assert compared > 25


@pytest.mark.parametrize("rollouts", [False, True])
def test_whole_steps_end_restart_and_reward(rollouts):
    dimension, rows, games = 3, 6, 50
    played = jax_step.Played(dimension, rows, games, rollouts)
    sets = sets_of(dimension)
    starts = {tuple(start) for start in positions(jax_step.reset(played.pool, 16_434).points)}
    ends, axes_seen = 0, set()
    for turn in range(15):
        before, moves = positions(played.state.points), np.asarray(played.state.moves)
        played.steps(1)
        seen, reward, terminated, truncated, final = map(np.asarray, played.results)
        after, actions = positions(played.state.points), np.asarray(played.actions[turn])
        for row in range(games):
            axes = sets[actions[row]]
            answers = {axis: rule.move(before[row], axes, axis) for axis in axes}
            wanted = {axis: observed(answers[axis], rows, dimension) for axis in axes}
            agent = [
                axis for axis in axes if np.allclose(wanted[axis], in_order(final[row]), **ROUNDED)
            ]
            axes_seen.add((len(axes), axes.index(agent[0])))
            finished = len(answers[agent[0]]) == 1
            assert terminated[row] == reward[row] == finished
            assert played.state.moves[row] == (0 if finished else moves[row] + 1)
            if finished:
                ends += 1
                assert tuple(after[row]) in starts
                shown = observed(after[row], rows, dimension)
                np.testing.assert_allclose(in_order(seen[row]), shown, **ROUNDED)
            else:
                assert after[row] == answers[agent[0]] or len(agent) > 1
                np.testing.assert_array_equal(seen[row], final[row])
        assert not truncated.any()
    assert ends > 20
    assert axes_seen >= {(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)}
