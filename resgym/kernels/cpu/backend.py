"""The backend compiled for the CPU: whole steps in one pass, around whoever has to be asked.

Importing this module needs numba (``pip install 'resgym[fast]'``).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from resgym.game.stepping import (
    Ask,
    EpisodeState,
    Games,
    RefusedStep,
    ResetResult,
    StepPlan,
    StepResult,
)
from resgym.game.variants import BASIC
from resgym.kernels.backend import ASKED, set_numbers
from resgym.kernels.cpu.compilation import lies_on_disk
from resgym.kernels.cpu.operations import NumbaOperations, array_of
from resgym.kernels.cpu.step import any_refused, start_rows, step_rows
from resgym.kernels.cpu.threads import share_rows

_FLOAT, _INTEGER, _BYTE, _FLAG = map(np.dtype, (np.float32, np.int64, np.int8, np.bool_))

_UNROLLED = (3,)
"""Numbers of axes with machine code of their own: a third faster, seconds of compiling each."""

Fields = tuple[np.ndarray, ...]
"""The fields of `EpisodeState`, in their order."""


class HostGames(NamedTuple):
    """The games after a pass, as arrays that nobody has seen: a later pass may write to them.

    Making tensors of them costs a fair part of a step of one game, so it is done when somebody
    looks. Whoever steps from these games gives them away.

    Attributes:
        fields: the state.
        spare: memory to write the next state to, but for the seeds: that of the state before, if
            nobody has seen it either.
    """

    fields: Fields
    spare: Fields | None

    def tensors(self) -> EpisodeState:
        """The state as tensors, to which nobody writes from now on."""
        return EpisodeState._make((*map(torch.from_numpy, self.fields), BASIC))


def _memory(games: Games) -> tuple[Fields, Fields, Fields | None]:
    """The state to read, where to write the next one, and what is spare after that."""
    if isinstance(games, HostGames):
        old, spare = games.fields, games.fields
        if games.spare is not None:
            return old, games.spare, spare
    else:
        old, spare = tuple(map(array_of, games.tensors()[:-1])), None  # all but the rule
    points, count, coords, half_moves, seed, *rest = old
    if spare is None:
        # An array of a tensor keeps that tensor, which may be of an array: a chain without end.
        seed = seed.copy()
    new = *map(np.empty_like, (points, count, coords, half_moves)), seed, *map(np.empty_like, rest)
    new[0].fill(-1)  # a state without points, see `step_rows`
    new[1].fill(0)
    return old, new, spare


class _Numbers(NamedTuple):
    """What a plan comes to: the arguments of `step_rows` that are the same in every step."""

    dims: Any
    sets: np.ndarray
    rules: tuple[int, ...]
    starts: tuple[int, ...]
    shows_final: bool
    plays: bool
    may_refuse: bool


@lru_cache(maxsize=256)
def _numbers(plan: StepPlan) -> _Numbers | None:
    """The plan as numbers; None if passes do not know its moves, its reward or its starts."""
    indices = NumbaBackend.indices(plan)
    if indices is None:
        return None
    spec, starts, mode = plan.spec, plan.start_spec, plan.autoreset_mode
    asked = indices[1] == ASKED
    # Hosts who are asked name their sets after the pass, and restarts wait for them.
    restarts = mode != "DISABLED" and not (asked and plan.seat == "agent")
    rules = (*indices, restarts, plan.step_limit, plan.scale_observation)
    drawn = (starts.max_num_points, starts.max_value + 1, starts.start_attempts, spec.reposition)
    unrolled = spec.dimension in _UNROLLED
    return _Numbers(
        dims=(0,) * spec.dimension if unrolled else np.zeros(spec.dimension, int),
        sets=set_numbers(spec.dimension, plan.opponent if plan.seat == "agent" else None),
        rules=tuple(map(int, rules)),
        starts=tuple(map(int, drawn)),
        shows_final=restarts and mode == "SAME_STEP",
        plays=not asked,
        may_refuse=plan.may_refuse and not asked,
    )


class NumbaBackend(NumbaOperations):
    """Compiled passes over all rows, around the answers of opponents that have to be asked."""

    compiled: ClassVar[dict[str, Any]] = {
        **NumbaOperations.compiled,
        "step": step_rows,
        "start": start_rows,
    }

    def operations_on_disk(self) -> set[str]:
        """The operations whose machine code lies on disk, so that they take no compiling."""
        return {name for name, function in self.compiled.items() if lies_on_disk(function)}

    def step(self, plan: StepPlan, games: Games, actions: Tensor, ask: Ask) -> StepResult:
        """As its base, by the shortest road where nobody is asked."""
        numbers = _numbers(plan)
        if numbers is None or not numbers.plays:
            return super().step(plan, games, actions, ask)
        return self._pass(plan, numbers, games, actions, None)

    def _numbers(self, plan: StepPlan) -> _Numbers | None:
        return _numbers(plan)

    def _refuse(
        self, plan: StepPlan, numbers: _Numbers, state: EpisodeState, actions: Tensor
    ) -> None:
        arrays = map(array_of, (actions, state.coords, state.ended))
        if plan.may_refuse and any_refused(numbers.dims, numbers.sets, numbers.rules, *arrays):
            raise RefusedStep

    def _pass(
        self,
        plan: StepPlan,
        numbers: _Numbers,
        games: Games,
        actions: Tensor,
        answers: Tensor | None,
    ) -> StepResult:
        old, new, spare = _memory(games)
        chosen = actions.contiguous().numpy()
        if numbers.may_refuse and any_refused(
            numbers.dims, numbers.sets, numbers.rules, chosen, old[2], old[-1]
        ):
            raise RefusedStep
        given = chosen if answers is None else array_of(answers)
        num_games, _, dimension = shape = old[0].shape
        coords_shape = (num_games, dimension)
        seen, seen_coords = np.empty(shape, _FLOAT), np.empty(coords_shape, _BYTE)
        final, final_coords = seen, seen_coords
        if numbers.shows_final:
            final, final_coords = np.empty(shape, _FLOAT), np.empty(coords_shape, _BYTE)
        reward, returns = np.empty((2, num_games), _FLOAT)
        rewards = np.empty((num_games if plan.seat == "both" else 0, 2), _FLOAT)
        terminated, truncated, overflow, ended = np.empty((4, num_games), _FLAG)
        lengths = np.empty(num_games, _INTEGER)
        num_ended = share_rows(
            step_rows, num_games, dimension, numbers.dims, numbers.sets, numbers.rules,
            numbers.starts,
            chosen, given, old, new,
            (
                seen, seen_coords, reward, rewards, terminated, truncated, overflow, ended, final,
                final_coords, returns, lengths,
            ),
        )  # fmt: skip
        any_final = num_ended > 0 and numbers.shows_final
        return StepResult(
            games=HostGames(new, spare),
            points=seen,
            coords=seen_coords,
            reward=reward,
            rewards=rewards if plan.seat == "both" else None,
            terminated=terminated,
            truncated=truncated,
            overflow=overflow,
            ended=ended if num_ended else None,
            final_points=final if any_final else None,
            final_coords=final_coords if any_final else None,
            episode_returns=returns if num_ended else None,
            episode_lengths=lengths if num_ended else None,
        )

    def _starts(self, plan: StepPlan, numbers: _Numbers, games: Games, mask: Tensor) -> ResetResult:
        old, new, spare = _memory(games)
        num_games, _, dimension = shape = old[0].shape
        seen, seen_coords = np.empty(shape, _FLOAT), np.empty((num_games, dimension), _BYTE)
        share_rows(
            start_rows, num_games, dimension, numbers.dims, numbers.sets, numbers.rules,
            numbers.starts,
            array_of(mask), old, new, seen, seen_coords,
        )  # fmt: skip
        return ResetResult(HostGames(new, spare), seen, seen_coords)
