"""The host's environment as one would write it for speed in JAX: a peer to be measured against.

Host's set, random agent's axis, move, pruning, reward, ends, restart from a position of a pool
drawn beforehand, observation before and after the restart. The batch is the last axis of every
array, so that the compiler has long rows to work on. Nothing of ``resgym`` is used.

Left out: the order of the rows (those of a start are ordered), starts drawn anew (a row takes
one of ``POOL`` at each of its ends), and coordinates above ``MAX_COORDINATE``, of which int32 holds
the sum over ten axes; a move past it ends the game as truncated. Observations are within one
rounding.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

MAX_COORDINATE = 2**27
ABSENT = 2**30  # every coordinate of an absent row, so that no present one is >= it
MAX_STEPS = 200
MAX_VALUE = 20
ACTIONS = 64
POOL = 16_384
Array = Any
Results = tuple[Array, ...]


class Games(NamedTuple):
    """N games: points int32 `[D, P, N]` (absent rows `ABSENT`), moves int32 `[N]`, random key."""

    points: Array
    moves: Array
    key: Array


def host_sets(dimension: int) -> Array:
    """int32 `[2^D - D - 1]`: the axes of every host action as bits."""
    return jnp.array([n for n in range(2**dimension) if n.bit_count() >= 2], jnp.int32)


def count(points: Array) -> Array:
    return (points[0] < ABSENT).sum(0)


def pruned(points: Array) -> Array:
    """Without the points that another one is <= on all axes; of equal ones the first stays."""
    total, row = points.sum(0), jnp.arange(points.shape[1])[:, None]
    used = ((points[0] < ABSENT).any(1) * (row[:, 0] + 1)).max()

    def cover(j: Array, covered: Array) -> Array:
        one = jax.lax.dynamic_slice_in_dim(points, j, 1, 1)
        other = (total[j] < total) | (j < row)  # <= on all axes and not equal, or before it
        return covered | ((one <= points).all(0) & other)

    none = jnp.zeros(points.shape[1:], bool)
    return jnp.where(jax.lax.fori_loop(0, used, cover, none), ABSENT, points)


def move(points: Array, axes: Array, axis: Array) -> tuple[Array, Array]:
    """Next positions, and which moves were refused for their size.

    Args:
        points: int32 `[D, P, N]`.
        axes: bool `[D, N]`, the host's set.
        axis: bool `[D, N]`, the agent's axis.
    """
    alive = points[0] < ABSENT
    total = jnp.where(axes[:, None], points, 0).sum(0)
    overflow = (alive & (total > MAX_COORDINATE)).any(0)
    target = axis[:, None] & alive & ~overflow
    return pruned(jnp.where(target, total, points)), overflow


def observed(points: Array) -> Array:
    """float32 `[N, P, D]`: the points over the largest coordinate, absent rows -1."""
    alive = points[0] < ABSENT
    largest = jnp.maximum(jnp.where(alive, points, 0).max((0, 1)), 1)
    shares = points.astype(jnp.float32) / largest.astype(jnp.float32)
    return jnp.where(alive, shares, -1.0).transpose(2, 1, 0)


def chosen_axis(key: Array, axes: Array) -> Array:
    """bool `[D, N]`: a uniformly random axis of every set."""
    drawn = jax.random.bits(key, axes.shape[1:]) >> 8
    rank = (drawn * axes.sum(0, dtype=jnp.uint32)) >> 24
    # Sums of slices, which the compiler fuses, in place of a cumulative one.
    before = jnp.stack([axes[:axis].sum(0, dtype=jnp.uint32) for axis in range(len(axes))])
    return axes & (before == rank)


@partial(jax.jit, donate_argnums=2)
def step(sets: Array, pool: Array, games: Games, actions: Array) -> tuple[Games, Results]:
    """One move of every game: the next state, and (observation, reward, terminated, truncated,
    final observation)."""
    num_games = games.moves.shape[0]
    key, agent_key, start_key = jax.random.split(games.key, 3)
    bits = jnp.arange(games.points.shape[0])[:, None]
    axes = (sets[actions] >> bits & 1).astype(bool)
    points, overflow = move(games.points, axes, chosen_axis(agent_key, axes))
    moves = games.moves + 1
    terminated = count(points) < 2
    truncated = ~terminated & (overflow | (moves >= MAX_STEPS))
    ended = terminated | truncated
    final = observed(points)
    first = jax.random.randint(start_key, (), 0, pool.shape[2] - num_games + 1)
    fresh = jax.lax.dynamic_slice_in_dim(pool, first, num_games, 2).astype(jnp.int32)
    points = jnp.where(ended, jnp.where(fresh < 0, ABSENT, fresh), points)
    state = Games(points, jnp.where(ended, 0, moves), key)
    reward = terminated.astype(jnp.float32)
    return state, (observed(points), reward, terminated, truncated, final)


@partial(jax.jit, donate_argnums=(2, 3))
def rollout(
    sets: Array, pool: Array, games: Games, results: Results, actions: Array, span: Array
) -> tuple[Games, Results]:
    """The steps from span[0] to span[1] in one compiled loop, each writing its results anew."""

    def one(index: Array, carry: tuple[Games, Results]) -> tuple[Games, Results]:
        return step(sets, pool, carry[0], actions[index % ACTIONS])

    return jax.lax.fori_loop(span[0], span[1], one, (games, results))


def start_pool(seed: int, number: int, num_points: int, dimension: int) -> Array:
    """int8 `[D, P, number]`: starts of two points or more, in descending order, absent rows -1."""
    rng, found, missing = np.random.default_rng(seed), [], number
    while missing > 0:
        drawn = rng.integers(0, MAX_VALUE + 1, (dimension, num_points, missing + number // 8))
        points = pruned(jnp.asarray(drawn, jnp.int32))
        points = np.asarray(jnp.where(points == ABSENT, -1, points))
        found.append(points[:, :, (points[0] >= 0).sum(0) > 1])
        missing -= found[-1].shape[2]
    points = np.concatenate(found, 2)[:, :, :number]
    order = np.lexsort(-points[::-1], axis=0)
    return jnp.asarray(np.take_along_axis(points, order[None], 1), jnp.int8)


def reset(pool: Array, num_games: int, seed: int = 0) -> Games:
    points = pool[:, :, :num_games].astype(jnp.int32)
    points = jnp.where(points < 0, ABSENT, points)
    return Games(points, jnp.zeros(num_games, jnp.int32), jax.random.key(seed))


class Played:
    """Random play, to be measured. JAX has threads of its own and is given no number of them.

    Args:
        rollouts: all steps of a repeat in one compiled loop; otherwise one call for each.
    """

    device, threads = "cpu", None

    def __init__(self, dimension: int, points: int, games: int, rollouts: bool) -> None:
        self.games, self.rollouts, self.played = games, rollouts, 0
        with jax.default_device(jax.devices("cpu")[0]):
            self.sets = host_sets(dimension)
            drawn = np.random.default_rng(0).integers(len(self.sets), size=(ACTIONS, games))
            self.actions = jnp.asarray(drawn, jnp.int32)
            self.each = list(self.actions)
            self.pool = start_pool(0, POOL + games, points, dimension)
            state = reset(self.pool, games)
            self.state, self.results = step(self.sets, self.pool, state, self.each[0])

    def steps(self, number: int) -> None:
        span = self.played, self.played + number
        if self.rollouts:
            self.state, self.results = rollout(
                self.sets, self.pool, self.state, self.results, self.actions, jnp.array(span)
            )
        else:
            for index in range(*span):
                actions = self.each[index % ACTIONS]
                self.state, self.results = step(self.sets, self.pool, self.state, actions)
        self.played += number

    def wait(self) -> None:
        jax.block_until_ready((self.state, self.results))

    @property
    def figures(self) -> dict[str, float]:
        return {"alive_points": float(count(self.state.points).mean())}

    def close(self) -> None:
        del self.state, self.results, self.actions, self.each, self.pool
