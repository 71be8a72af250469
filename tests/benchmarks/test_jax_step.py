"""The JAX peer plays the same game: against the reference in plain Python, where JAX is there."""

import numpy as np
import pytest

from tests.reference import rule

jax = pytest.importorskip("jax", reason="the JAX peer needs JAX")
jnp = jax.numpy
from benchmarks import jax_step  # noqa: E402

ROUNDED = {"rtol": 2e-7, "atol": 0}  # XLA divides by multiplying with a rounded inverse


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


@pytest.mark.parametrize(("dimension", "rollouts"), [(2, True), (3, False), (3, True), (5, True)])
def test_whole_steps_end_restart_and_reward(dimension, rollouts):
    rows, games = 6, 50
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
            last = in_order(final[row])
            agent = [axis for axis in axes if np.allclose(wanted[axis], last, **ROUNDED)]
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
    print(dimension, rollouts, ends, axes_seen)
    assert ends > 20
    sizes = range(2, dimension + 1)
    assert axes_seen >= {(size, place) for size in sizes for place in range(size)}
