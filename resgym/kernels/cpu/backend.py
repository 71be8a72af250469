"""The backend compiled for the CPU: whole steps in one pass, shared out between threads, and moves.

Importing this module needs numba (``pip install 'resgym[fast]'``). Tensors are read and written
through NumPy views, without copies; results are new. Compiled functions run without the GIL, so
plain threads do; numba's own ones abort when two threads of a program use them at once, and hang in
a process that was forked.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from resgym.game.episode import Backend
from resgym.game.spec import GameSpec
from resgym.game.state import BASIC, GameState
from resgym.game.stepping import (
    AUTORESET_MODES,
    EpisodeState,
    Games,
    RefusedStep,
    StepPlan,
    StepResult,
)
from resgym.kernels.backend import FusedBackend, Numbers
from resgym.kernels.cpu.compilation import compiled, lies_on_disk
from resgym.kernels.cpu.rules import play_move, set_of_row, within
from resgym.kernels.cpu.step import HOSTS, step_rows

_LEAST_WORK = 3 * 1024
"""Rows times axes for which one more thread is worth its waking up."""

_BLOCKS_PER_THREAD = 4


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="resgym")


if hasattr(os, "register_at_fork"):
    # The threads of a parent process do not live on in a forked child.
    os.register_at_fork(after_in_child=_threads.cache_clear)


def share_rows(function: Callable[..., int], num_rows: int, dimension: int, *arguments: Any) -> int:
    """The sum of a compiled ``function(begin, end, *arguments)`` over ranges that cover all rows.

    As many threads take part as torch uses (`torch.set_num_threads`) and the work is worth, which
    grows with the game's ``dimension``. No row's results may depend on the range it is in.
    """
    parts = num_rows * dimension // _LEAST_WORK
    if parts > 1:
        parts = min(parts, torch.get_num_threads())
    if parts <= 1:
        return function(0, num_rows, *arguments)
    size = -(-num_rows // (parts * _BLOCKS_PER_THREAD))
    blocks = iter(range(0, num_rows, size))

    def work() -> int:
        total = 0
        # A free thread takes the next block: taking it is one operation under the GIL.
        while (begin := next(blocks, None)) is not None:
            total += function(begin, min(begin + size, num_rows), *arguments)
        return total

    threads = _threads()
    others = [threads.submit(work) for _ in range(parts - 1)]
    total = work()
    # On a busy machine the rows may be done before another thread has begun.
    return total + sum(other.result() for other in others if not other.cancel())


_FLOAT, _INTEGER, _BYTE, _FLAG = map(np.dtype, (np.float32, np.int64, np.int8, np.bool_))

_SAME_STEP = AUTORESET_MODES.index("SAME_STEP")

_UNROLLED = (3,)
"""Numbers of axes with machine code of their own: a third faster, seconds of compiling each."""

Fields = tuple[np.ndarray, ...]
"""The fields of `EpisodeState`, in their order."""


class HostGames(NamedTuple):
    """The games after a pass, as private arrays that a later pass may write to.

    Making tensors of them costs a fair part of a step of one game, so it is done when somebody
    looks. Code that steps from these games gives them up.

    Attributes:
        fields: the state.
        spare: memory to write the next state to, but for the seeds: that of the state before, if it
            is private too.
    """

    fields: Fields
    spare: Fields | None

    def tensors(self) -> EpisodeState:
        """The state as tensors, which are never written to again."""
        return EpisodeState._make((*map(torch.from_numpy, self.fields), BASIC))


def _memory(games: Games) -> tuple[Fields, Fields, Fields | None]:
    """The state to read, where to write the next one, and what is spare after that."""
    if isinstance(games, HostGames):
        old, spare = games.fields, games.fields
        if games.spare:
            return old, games.spare, spare
    else:
        old, spare = tuple(map(array_of, games.tensors()[:-1])), None  # all but the rule
    points, count, coords, half_moves, seed, *rest = old
    if not spare:
        # An array of a tensor keeps that tensor, which may be of an array: a chain without end.
        seed = seed.copy()
    new = *map(np.empty_like, (points, count, coords, half_moves)), seed, *map(np.empty_like, rest)
    new[0].fill(-1)  # a state without points, see `step_rows`
    new[1].fill(0)
    return old, new, spare


@cache
def _dims(dimension: int) -> Any:
    """See `resgym.kernels.cpu.rules`."""
    return (0,) * dimension if dimension in _UNROLLED else np.zeros(dimension, int)


def array_of(tensor: Tensor) -> np.ndarray:
    """The memory of a CPU tensor in C order; a copy only if the tensor is not contiguous."""
    return tensor.detach().contiguous().numpy()


@compiled
def _move_games(points, count, coords, axis, overflow, reposition):
    """Plays in place; returns the first row whose axis is none, or -1."""
    num_games, num_points, dimension = points.shape
    scratch = np.empty(2 * num_points, np.int64)
    numbers = np.empty(dimension, np.int64)
    dims = np.empty(dimension, np.int64)
    for game in range(num_games):
        overflow[game] = False
        chosen = axis[game]
        if chosen < 0 or chosen >= dimension:
            return game
        axis_mask = set_of_row(dims, coords[game])
        position, before = points[game], within(count[game], points[game])
        if before <= 1 or not (axis_mask >> chosen) & 1 or axis_mask & (axis_mask - 1) == 0:
            continue
        after = play_move(dims, position, before, axis_mask, chosen, reposition, scratch, numbers)
        if after < 0:
            overflow[game] = True
            continue
        count[game] = after
        for row in range(after, before):
            for other in range(dimension):
                points[game, row, other] = -1
    return -1


class NumbaBackend(FusedBackend):
    """Compiled passes over all rows, and compiled moves."""

    name = "numba"
    device_types = ("cpu",)
    hosts = HOSTS
    compiled: ClassVar[dict[str, Any]] = {
        "move": _move_games,
        "step": step_rows,
        "start": step_rows,
    }
    """What is compiled of each operation."""

    def operations_on_disk(self) -> set[str]:
        """The operations whose machine code lies on disk, so that they take no compiling."""
        return {name for name, function in self.compiled.items() if lies_on_disk(function)}

    def _pass(
        self,
        plan: StepPlan,
        numbers: Numbers,
        games: Games,
        actions: Tensor,
        answers: Tensor | None = None,
    ) -> StepResult:
        old, new, spare = _memory(games)
        chosen = actions.contiguous().numpy()
        given = chosen if answers is None else array_of(answers)
        num_games, _, dimension = shape = old[0].shape
        coords_shape, both = (num_games, dimension), plan.seat == "both"
        shows_final = numbers.rules[5] and numbers.rules[4] == _SAME_STEP
        seen, seen_coords = np.empty(shape, _FLOAT), np.empty(coords_shape, _BYTE)
        final, final_coords = seen, seen_coords
        if shows_final:
            final, final_coords = np.empty(shape, _FLOAT), np.empty(coords_shape, _BYTE)
        reward, returns = np.empty((2, num_games), _FLOAT)
        rewards = np.empty((num_games if both else 0, 2), _FLOAT)
        terminated, truncated, overflow, ended = np.empty((4, num_games), _FLAG)
        lengths = np.empty(num_games, _INTEGER)
        num_ended = share_rows(
            step_rows, num_games, dimension, _dims(dimension), *numbers, chosen, given, old, new,
            (
                seen, seen_coords, reward, rewards, terminated, truncated, overflow, ended, final,
                final_coords, returns, lengths,
            ),
        )  # fmt: skip
        if num_ended < 0:
            raise RefusedStep
        result = StepResult(
            HostGames(new, spare), seen, seen_coords, reward, rewards if both else None, terminated,
            truncated, overflow, ended, None, None, returns, lengths, num_ended > 0,
        )  # fmt: skip
        if shows_final and num_ended:
            result = result._replace(final_points=final, final_coords=final_coords)
        return result

    def move(
        self, state: GameState, coords: Tensor, axis: Tensor, spec: GameSpec
    ) -> tuple[GameState, Tensor]:
        """As `resgym.game.rules.move`; an axis outside 0..D-1 is an IndexError."""
        if spec.rule != "basic" or spec.polytope != "dominance":
            return Backend.move(state, coords, axis, spec)
        after = GameState(
            state.points.clone(memory_format=torch.contiguous_format),
            state.count.clone(memory_format=torch.contiguous_format),
        )
        overflow = torch.empty(state.num_games, dtype=torch.bool)
        given = after.points, after.count, coords.to(torch.bool), axis, overflow
        bad = _move_games(*map(array_of, given), spec.reposition)
        if bad >= 0:
            raise IndexError(f"axis must be in 0..{spec.dimension - 1}, got {int(axis[bad])}")
        return after, overflow
