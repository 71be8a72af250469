"""The step of the host's environment as one would write it in JAX: a peer to be measured against.

One game is a few lines of array code, ``vmap`` makes a batch of it and ``jit`` one compiled
function: host's set, random agent's axis, move, pruning, order, reward, ends, restart from a
freshly drawn position, observation before and after it. Nothing of ``resgym`` is used. Positions
are int64.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

MAX_COORDINATE = 2**59
MAX_STEPS = 200
MAX_VALUE = 20
ACTIONS = 64
Array = Any


class Games(NamedTuple):
    """Games `[...]`: points int64 `[..., P, D]` (absent rows -1), moves made, random keys."""

    points: Array
    moves: Array
    key: Array


def host_sets(dimension: int) -> Array:
    """bool `[2^D - D - 1, D]`: the axes of every host action."""
    numbers = [n for n in range(2**dimension) if n.bit_count() >= 2]
    return jnp.array([[bool(n >> axis & 1) for axis in range(dimension)] for n in numbers])


def count(points: Array) -> Array:
    return (points[:, 0] >= 0).sum()


def pruned(points: Array) -> Array:
    """Without the points that another one is <= on all axes, in descending order."""
    order = jnp.arange(points.shape[0])
    less = (points[None] <= points[:, None]).all(-1)  # [i, j]: j is <= i
    equal = (points[None] == points[:, None]).all(-1)
    alive = points[:, 0] >= 0
    covers = alive[None] & less & (~equal | (order[None] < order[:, None]))
    points = jnp.where((alive & ~covers.any(1))[:, None], points, -1)
    return points[jnp.lexsort(tuple(-points[:, axis] for axis in reversed(range(points.shape[1]))))]


def move(points: Array, axes: Array, axis: Array) -> tuple[Array, Array]:
    """The next position of one game, and whether the move was refused for its size."""
    total = jnp.where(axes, points, 0).sum(-1)
    alive = points[:, 0] >= 0
    overflow = (alive & (total > MAX_COORDINATE)).any()
    target = alive[:, None] & (jnp.arange(points.shape[1]) == axis)
    return pruned(jnp.where(target & ~overflow, total[:, None], points)), overflow


def observed(points: Array) -> Array:
    """float32 `[P, D]`: the points over the largest coordinate, absent rows -1."""
    largest = jnp.maximum(points.max(), 1)
    return jnp.where(points < 0, -1.0, points / largest).astype(jnp.float32)


def started(key: Array, num_points: int, dimension: int) -> Array:
    """A position drawn uniformly, drawn again while it has one point only."""

    def draw(state: tuple[Array, Array]) -> tuple[Array, Array]:
        key, use = jax.random.split(state[0])
        drawn = jax.random.randint(use, (num_points, dimension), 0, MAX_VALUE + 1, jnp.int64)
        return key, pruned(drawn)

    first = draw((key, None))
    return jax.lax.while_loop(lambda state: count(state[1]) < 2, draw, first)[1]


def chosen_axis(key: Array, axes: Array) -> Array:
    """A uniformly random axis of a set."""
    rank = jax.random.randint(key, (), 0, axes.sum())
    return (jnp.cumsum(axes) > rank).argmax()


def step_one(sets: Array, game: Games, action: Array) -> tuple[Games, tuple[Array, ...]]:
    """One move of one game: its next state, and (observation, reward, terminated, truncated,
    final observation)."""
    key, agent_key, start_key = jax.random.split(game.key, 3)
    axes = sets[action]
    points, overflow = move(game.points, axes, chosen_axis(agent_key, axes))
    moves = game.moves + 1
    terminated = count(points) < 2
    truncated = ~terminated & (overflow | (moves >= MAX_STEPS))
    ended = terminated | truncated
    final = observed(points)
    fresh = started(start_key, *points.shape)
    points = jnp.where(ended, fresh, points)
    reward = terminated.astype(jnp.float32)
    state = Games(points, jnp.where(ended, 0, moves), key)
    return state, (observed(points), reward, terminated, truncated, final)


@partial(jax.jit, donate_argnums=1)
def step(sets: Array, games: Games, actions: Array) -> tuple[Games, tuple[Array, ...]]:
    return jax.vmap(step_one, in_axes=(None, 0, 0))(sets, games, actions)


@partial(jax.jit, static_argnums=(1, 2, 3))
def reset(seed: int, num_games: int, num_points: int, dimension: int) -> Games:
    keys = jax.random.split(jax.random.key(seed), 2 * num_games)
    draw = partial(started, num_points=num_points, dimension=dimension)
    points = jax.vmap(draw)(keys[:num_games])
    return Games(points, jnp.zeros(num_games, jnp.int64), keys[num_games:])


class Played:
    """Random play, to be measured. JAX has threads of its own and is given no number of them."""

    device, threads = "cpu", None

    def __init__(self, dimension: int, points: int, games: int) -> None:
        self.games = games
        self.sets = host_sets(dimension)
        drawn = np.random.default_rng(0).integers(len(self.sets), size=(ACTIONS, games))
        self.actions = [jnp.asarray(each) for each in drawn]
        with jax.default_device(jax.devices("cpu")[0]):
            self.state = reset(0, games, points, dimension)
        self.results: tuple[Array, ...] = ()
        self.played = 0

    def steps(self, number: int) -> None:
        for index in range(self.played, self.played + number):
            self.state, self.results = step(self.sets, self.state, self.actions[index % ACTIONS])
        self.played += number

    def wait(self) -> None:
        jax.block_until_ready((self.state, self.results))

    @property
    def figures(self) -> dict[str, float]:
        return {"alive_points": float(jax.vmap(count)(self.state.points).mean())}

    def close(self) -> None:
        self.state, self.results, self.actions = None, (), []  # type: ignore[assignment]
