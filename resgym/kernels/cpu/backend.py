"""The hot operations compiled for the CPU: one pass over the games, one game at a time.

Tensors are read and written through NumPy views, without copies; results are new tensors. Importing
this module needs numba (``pip install 'resgym[fast]'``).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from resgym.game.actions import action_axes
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec
from resgym.game.state import GameState, canonical_state, where_state
from resgym.kernels.cpu.compilation import compiled
from resgym.kernels.cpu.players import HOSTS, name_set
from resgym.kernels.cpu.rules import draw_start, observe_position, play_move, set_of_row

__all__ = ["host_actions", "move", "observe_points", "random_starts"]


def _array(tensor: Tensor) -> np.ndarray:
    """The memory of a CPU tensor in C order; a copy only if the tensor is not contiguous."""
    return tensor.detach().contiguous().numpy()


@compiled
def _move_rows(points, count, coords, axis, reposition, overflow, moved):
    """Plays in place; returns the first row whose axis is none, or -1."""
    num_games, num_points, dimension = points.shape
    room = np.empty(2 * num_points, np.int64)
    numbers = np.empty(num_points * dimension, np.int64)
    dims = np.empty(dimension, np.int64)
    for game in range(num_games):
        overflow[game] = moved[game] = False
        chosen = axis[game]
        if chosen < 0 or chosen >= dimension:
            return game
        axes = set_of_row(dims, coords[game])
        before = count[game]
        # A set of one axis has no bit left without its lowest one.
        if before <= 1 or not (axes >> chosen) & 1 or axes & (axes - 1) == 0:
            continue
        after = play_move(dims, points[game], before, axes, chosen, reposition, room, numbers)
        if after < 0:
            overflow[game] = True
            continue
        moved[game] = True
        count[game] = after
        for row in range(after, before):
            for other in range(dimension):
                points[game, row, other] = -1
    return -1


def move(
    state: GameState, coords: Tensor, axis: Tensor, spec: GameSpec
) -> tuple[GameState, Tensor]:
    """As `resgym.game.rules.move`.

    Raises:
        IndexError: an axis is outside 0..D-1.
    """
    after = GameState(
        state.points.clone(memory_format=torch.contiguous_format),
        state.count.clone(memory_format=torch.contiguous_format),
    )
    overflow = torch.empty(state.num_games, dtype=torch.bool)
    moved = torch.empty_like(overflow)
    newton = spec.polytope == "newton"
    bad = _move_rows(
        _array(after.points),
        _array(after.count),
        _array(coords.to(torch.bool)),
        _array(axis),
        spec.reposition and not newton,
        _array(overflow),
        _array(moved),
    )
    if bad >= 0:
        raise IndexError(f"axis must be in 0..{spec.dimension - 1}, got {int(axis[bad])}")
    if newton:
        after = where_state(moved, _vertices(after, spec), state)
    return after, overflow


def _vertices(state: GameState, spec: GameSpec) -> GameState:
    """The vertices among minimal points, by the reference."""
    return canonical_state(state.points.permute(2, 1, 0).contiguous(), state.count, spec)


@compiled
def _draw_rows(points, count, keys, values, attempts, reposition):
    num_games, num_points, dimension = points.shape
    room = np.empty(2 * num_points, np.int64)
    numbers = np.empty(num_points * dimension, np.int64)
    dims = np.empty(dimension, np.int64)
    for game in range(num_games):
        key = np.uint64(keys[game])
        drawn = draw_start(dims, points[game], key, values, attempts, reposition, room, numbers)
        count[game] = drawn
        for row in range(drawn, num_points):
            for axis in range(dimension):
                points[game, row, axis] = -1


def random_starts(spec: GameSpec, rng: RowRandom) -> GameState:
    """As `resgym.game.starts.random_starts`."""
    if spec.max_num_points < 2:
        raise ValueError("max_num_points must be at least 2 for random starts, got 1")
    shape = (*rng.key.shape, spec.max_num_points, spec.dimension)
    state = GameState(
        torch.empty(shape, dtype=torch.int64), torch.empty(rng.key.shape, dtype=torch.int64)
    )
    newton = spec.polytope == "newton"
    _draw_rows(
        _array(state.points),
        _array(state.count),
        _array(rng.key),
        spec.max_value + 1,
        spec.start_attempts,
        spec.reposition and not newton,
    )
    # A position of several minimal points has several vertices: no start is finished after all.
    return _vertices(state, spec) if newton else state


@compiled
def _observe_rows(points, count, scale, seen):
    dims = np.empty(points.shape[2], np.int64)
    for game in range(points.shape[0]):
        observe_position(dims, points[game], count[game], scale, seen[game])


def observe_points(state: GameState, scale: bool = True) -> Tensor:
    """As `resgym.game.observation.observe_points`."""
    seen = torch.full(state.points.shape, -1.0)
    _observe_rows(_array(state.points), _array(state.count), bool(scale), _array(seen))
    return seen


@lru_cache(maxsize=16)
def set_numbers(dimension: int) -> np.ndarray:
    """int64 [A]: the sets of the host's actions, bit j for axis j, in ascending order."""
    return np.array([sum(1 << axis for axis in axes) for axes in action_axes(dimension)])


@compiled
def _choose_rows(host, points, count, sets, keys, actions):
    dims = np.empty(points.shape[2], np.int64)
    for game in range(count.shape[0]):
        axes = name_set(dims, host, points[game], count[game], sets, np.uint64(keys[game]))
        actions[game] = np.searchsorted(sets, axes)


def host_actions(name: str, state: GameState, rng: RowRandom) -> Tensor | None:
    """The actions int64 [N] of a scripted host; None for one that is not compiled."""
    if name not in HOSTS:
        return None
    actions = torch.empty(state.num_games, dtype=torch.int64)
    _choose_rows(
        HOSTS.index(name),
        _array(state.points),
        _array(state.count),
        set_numbers(state.points.shape[2]),
        _array(rng.key),
        _array(actions),
    )
    return actions
