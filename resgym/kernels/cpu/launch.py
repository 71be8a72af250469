"""`resgym.kernels.step` by `compiled_step`: allocates the results and shares the rows out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from resgym.kernels.cpu.backend import set_numbers
from resgym.kernels.cpu.players import AGENTS, HOSTS
from resgym.kernels.cpu.step import any_refused, start_rows, step_rows
from resgym.kernels.cpu.threads import share_rows
from resgym.kernels.step import (
    GIVEN,
    MODES,
    NO_LIMIT,
    ON_ILLEGAL,
    REWARDS,
    SEATS,
    Fields,
    Played,
    Started,
    StepPlan,
    opponent_number,
)

__all__ = ["play_start", "play_step", "takes_answers"]

_FLOAT = np.dtype(np.float32)

_UNROLLED = (3,)
"""Numbers of axes with machine code of their own: a third faster, seconds of compiling each."""


Maker = Callable[[tuple[int, ...], Any], np.ndarray]


class _Room:
    """Large arrays that are used again once nobody else holds them.

    The system hands out fresh memory page by page at its first use, which takes as long as a third
    of a step. An array that the caller still holds, or a tensor or view of it, is never reused: the
    count of its references says so.
    """

    _LEAST_BYTES = 1 << 17  # smaller ones come from memory that the process has already
    _MOST_KEPT = 6  # of one shape, so that a caller who keeps everything costs no time

    def __init__(self) -> None:
        self._kept: dict[Any, list[np.ndarray]] = {}

    def maker(self, points: np.ndarray) -> Maker:
        """What makes the arrays of a step: for few games, whose points are small, the plain one."""
        return np.empty if points.nbytes < self._LEAST_BYTES else self.take

    def take(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An array with any content that nothing else refers to."""
        kept = self._kept.setdefault((shape, dtype), [])
        for index in range(len(kept)):
            if sys.getrefcount(kept[index]) == _REFERENCES_WHEN_FREE:
                return kept[index]
        array = np.empty(shape, dtype)
        if array.nbytes >= self._LEAST_BYTES:
            kept.append(array)
            if len(kept) > self._MOST_KEPT:
                del kept[0]
        return array


def _references_of_a_listed_array() -> int:
    kept = [np.empty(1)]
    return sys.getrefcount(kept[0])


_REFERENCES_WHEN_FREE = _references_of_a_listed_array()


class _Settings(NamedTuple):
    """What a plan comes to: the first arguments of the compiled functions, in their order."""

    step: tuple[Any, ...]
    start: tuple[Any, ...]
    dims: Any
    refusal: tuple[Any, ...] | None
    same_step: bool
    both: bool


@lru_cache(maxsize=256)
def _settings(plan: StepPlan) -> _Settings | None:
    """The plan as numbers, or None for what is not compiled."""
    spec, starts = plan.spec, plan.start_spec
    given = plan.opponent == GIVEN
    if given:
        plan = plan._replace(opponent=AGENTS[0] if plan.seat == "host" else HOSTS[0])
    opponent = opponent_number(plan, AGENTS, HOSTS)
    if opponent is None:
        return None
    if given:
        opponent = -1
    sets = set_numbers(spec.dimension)
    dims = (0,) * spec.dimension if spec.dimension in _UNROLLED else np.zeros(spec.dimension, int)
    seat = SEATS.index(plan.seat)
    on_illegal, mode = ON_ILLEGAL.index(plan.invalid_action), MODES.index(plan.autoreset_mode)
    limit = NO_LIMIT if plan.max_episode_steps is None else plan.max_episode_steps
    shown = (
        plan.scale_observation,
        starts.max_num_points,
        starts.max_value + 1,
        starts.start_attempts,
        spec.reposition,
    )
    reward = REWARDS.index(plan.reward)
    refuses = plan.invalid_action == "error" or plan.autoreset_mode == "DISABLED"
    return _Settings(
        step=(dims, sets, seat, opponent, reward, on_illegal, mode, limit, *shown),
        start=(dims, sets, seat, opponent, *shown),
        dims=dims,
        refusal=(seat, on_illegal, mode, len(sets)) if refuses else None,
        same_step=plan.autoreset_mode == "SAME_STEP",
        both=plan.seat == "both",
    )


class _Memory(NamedTuple):
    """What a step hands to the next: the fields that it returned, others to write to, room."""

    fields: Fields
    spare: list[np.ndarray] | None
    room: _Room


def _arrays(fields: Fields, memory: _Memory | None) -> tuple[Fields, list[np.ndarray], _Room]:
    """The memory of given fields, arrays to write the new ones to, and room for the rest.

    Fields that come back as they were returned were seen by nobody, nor were those before them:
    these are written to again. For few games making arrays and tensors takes longer than the step.
    """
    if memory is not None and fields is memory.fields:
        new = memory.spare or _new(fields, memory.room.maker(fields.points))
        return fields, new, memory.room
    old = Fields._make(map(_array, fields))
    room = _Room() if memory is None else memory.room
    return old, _new(old, room.maker(old.points)), room


_NO_REWARDS = np.empty((0, 2), np.float32)


@lru_cache(maxsize=64)
def _no_rows(num_points: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """What stands for observations that a step does not make."""
    return np.empty((0, num_points, dimension), np.float32), np.empty((0, dimension), np.int8)


def _array(field: Any) -> np.ndarray:
    return field.contiguous().numpy() if isinstance(field, Tensor) else field


def _new(old: Fields, make: Maker) -> list[np.ndarray]:
    """Room for all fields but the seeds, which never change here."""
    return [make(field.shape, field.dtype) for field in old if field is not old.seed]


def _result(fields: Fields, old: Fields, new: list[np.ndarray], room: _Room) -> _Memory:
    """The memory to hand back, with the new fields."""
    spare = [field for field in old if field is not old.seed] if fields is old else None
    return _Memory(Fields._make([*new[:4], old.seed, *new[4:]]), spare, room)


def takes_answers(plan: StepPlan) -> bool:
    """Whether `play_step` plays a plan whose opponent is `GIVEN`."""
    return _settings(plan) is not None


def play_step(
    plan: StepPlan,
    fields: Fields,
    actions: Tensor,
    memory: Any = None,
    answers: Tensor | None = None,
) -> Played | None:
    """Plays one step of all rows.

    Args:
        plan: what kind of step.
        fields: CPU tensors, only read; or what the step or start before returned.
        actions: int64 [N].
        memory: ``Played.memory`` or ``Started.memory`` of what was last played, if at hand.
        answers: int64 [N], the agents' choices where a `GIVEN` agent answers. A `GIVEN` host is
            asked afterwards: the step ends with sets named in no row that was played.

    Returns:
        The results and the fields after the step as arrays. None, with nothing done,
        for a plan that is not compiled, and where the reference would raise an error.
    """
    settings = _settings(plan)
    if settings is None:
        return None
    old, new, room = _arrays(fields, memory)
    chosen = actions.contiguous().numpy()
    if settings.refusal is not None and any_refused(
        settings.dims, chosen, old.coords, old.ended, *settings.refusal
    ):
        return None
    num_games, num_points, dimension = shape = old.points.shape
    make = room.maker(old.points)
    seen, seen_coords = make(shape, _FLOAT), np.empty((num_games, dimension), np.int8)
    reward = np.empty(num_games, np.float32)
    rewards = np.empty((num_games, 2), np.float32) if settings.both else _NO_REWARDS
    terminated, truncated, overflow, ended = np.empty((4, num_games), np.bool_)
    final_seen, final_coords = _no_rows(num_points, dimension)
    if settings.same_step:
        final_seen, final_coords = make(shape, _FLOAT), np.empty((num_games, dimension), np.int8)
    final_returns, final_lengths = np.empty(num_games, np.float32), np.empty(num_games, np.int64)
    num_ended = share_rows(
        step_rows, num_games, dimension, *settings.step, chosen,
        chosen if answers is None else answers.contiguous().numpy(), *old, *new, seen, seen_coords,
        reward, rewards, terminated, truncated, overflow, ended, final_seen, final_coords,
        final_returns, final_lengths,
    )  # fmt: skip
    memory = _result(fields, old, new, room)
    any_final = num_ended > 0 and settings.same_step
    return Played(
        fields=memory.fields,
        memory=memory,
        points=seen,
        coords=seen_coords,
        reward=reward,
        rewards=rewards if settings.both else None,
        terminated=terminated,
        truncated=truncated,
        overflow=overflow,
        ended=ended if num_ended else None,
        final_points=final_seen if any_final else None,
        final_coords=final_coords if any_final else None,
        episode_returns=final_returns if num_ended else None,
        episode_lengths=final_lengths if num_ended else None,
    )


def play_start(plan: StepPlan, fields: Fields, mask: Tensor, memory: Any = None) -> Started | None:
    """Starts episodes from random positions in the rows of ``mask``, bool [N].

    Returns:
        The observation of all rows and the fields as arrays; None, with nothing done, for a plan
        that is not compiled. The other arguments are those of `play_step`.
    """
    settings = _settings(plan)
    if settings is None:
        return None
    old, new, room = _arrays(fields, memory)
    num_games, _, dimension = old.points.shape
    seen = room.maker(old.points)(old.points.shape, _FLOAT)
    seen_coords = np.empty((num_games, dimension), np.int8)
    share_rows(
        start_rows, num_games, dimension, *settings.start, mask.contiguous().numpy(), *old, *new,
        seen, seen_coords,
    )  # fmt: skip
    memory = _result(fields, old, new, room)
    return Started(fields=memory.fields, memory=memory, points=seen, coords=seen_coords)
