"""The backend of Triton kernels: a step is one launch, without a wait for the device."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec
from resgym.game.state import GameState
from resgym.game.stepping import (
    AUTORESET_MODES,
    Ask,
    EpisodeState,
    Games,
    RefusedStep,
    ResetResult,
    StepPlan,
    StepResult,
)
from resgym.kernels.backend import ASKED, FusedBackend, set_numbers
from resgym.kernels.cuda.grids import cut, drawn_axes, flags_of, launch
from resgym.kernels.cuda.kernels import (
    HOSTS,
    STARTING,
    draw_games,
    move_games,
    observe_games,
    step_games,
)

_SAME_STEP = AUTORESET_MODES.index("SAME_STEP")


class _Numbers(NamedTuple):
    """What a plan comes to: constants of `step_games`, and its last numbers."""

    step: dict[str, Any]
    start: dict[str, Any]
    numbers: tuple[int, int, int, int]


@lru_cache(maxsize=256)
def _numbers(plan: StepPlan) -> _Numbers | None:
    """The plan as numbers, or None for what no kernel plays."""
    indices = TritonBackend.indices(plan)
    if indices is None or indices[1] == ASKED:
        return None
    spec, starts = plan.spec, plan.start_spec
    step = {
        **dict(zip(("SEAT", "OPPONENT", "REWARD", "ON_ILLEGAL", "MODE"), indices, strict=True)),
        "SCALE": plan.scale_observation,
        "REPOSITION": spec.reposition,
        "AXES": cut(spec.max_num_points, spec.dimension).axes,
        # Of the game, not of the starts: a curriculum shall not compile anew.
        "DRAWN_AXES": drawn_axes(spec),
    }
    drawn = (starts.max_num_points, starts.max_value + 1, starts.start_attempts)
    return _Numbers(
        step=step,
        # Neither rewards nor illegal actions there: one binary for all of them.
        start={**step, "REWARD": 0, "ON_ILLEGAL": 0, "MODE": STARTING},
        numbers=(plan.step_limit, *drawn),
    )


@lru_cache(maxsize=64)
def _sets(dimension: int, host: str | None, device: torch.device) -> Tensor:
    """int64 [A]: see `set_numbers`."""
    return torch.tensor(set_numbers(dimension, host), device=device)


def _launched(
    plan: StepPlan, numbers: _Numbers, games: Games, given: Tensor, constants: dict[str, Any]
) -> tuple[StepResult, Tensor]:
    """A pass over all games, and bool [N], which of them refuse it.

    ``given`` are actions int64 [N], or bytes [N] that mark the games to start.
    """
    state = games.tensors()
    num_games, _, dimension = shape = state.points.shape
    device = state.points.device
    both, shows_final = plan.seat == "both", constants["MODE"] == _SAME_STEP
    points = torch.empty(shape, dtype=torch.int64, device=device)
    coords = torch.empty(num_games, dimension, dtype=torch.bool, device=device)
    integers = torch.empty(6, num_games, dtype=torch.int64, device=device)
    floats = torch.empty(3, num_games, device=device)
    flags = torch.empty(6, num_games, dtype=torch.bool, device=device)
    rewards = torch.empty(num_games, 2, device=device) if both else floats
    seen = torch.empty(shape, device=device)
    seen_coords = torch.empty(num_games, dimension, dtype=torch.int8, device=device)
    final, final_coords = seen, seen_coords
    if shows_final:
        final, final_coords = torch.empty_like(seen), torch.empty_like(seen_coords)
    table = _sets(dimension, plan.opponent, device)
    fields = state[:-1]  # all but the rule
    old = [flags_of(each) if each.dtype == torch.bool else each.contiguous() for each in fields]
    launch(
        step_games, num_games, plan.spec, device, given, table, *old, points, flags_of(coords),
        integers, floats, flags_of(flags), rewards, seen, seen_coords, final, final_coords,
        num_games, len(table), *numbers.numbers, **constants,
    )  # fmt: skip
    count, half_moves, episode, key, lengths, final_lengths = integers.unbind()
    returns, reward, final_returns = floats.unbind()
    waiting, terminated, truncated, overflow, ended, refused = flags.unbind()
    result = StepResult(
        games=EpisodeState(
            points, count, coords, half_moves, state.seed, episode, key, returns, lengths, waiting
        ),
        points=seen,
        coords=seen_coords,
        reward=reward,
        rewards=rewards if both else None,
        terminated=terminated,
        truncated=truncated,
        overflow=overflow,
        ended=ended,
        final_points=final if shows_final else None,
        final_coords=final_coords if shows_final else None,
        episode_returns=final_returns,
        episode_lengths=final_lengths,
    )
    return result, refused


class TritonBackend(FusedBackend):
    """One launch a step, opponents included."""

    name = "triton"
    hosts = HOSTS

    def step(self, plan: StepPlan, games: Games, actions: Tensor, ask: Ask) -> StepResult:
        """See `resgym.game.episode.Backend.step`.

        It waits for the device only if a step may be refused: with ``invalid_action="error"`` or in
        DISABLED mode one value is read back, because an error has to be raised before anything
        changes. What is seen of ended episodes and their statistics are always there.
        """
        numbers = _numbers(plan)
        if numbers is None:
            return super().step(plan, games, actions, ask)
        result, refused = _launched(plan, numbers, games, actions.contiguous(), numbers.step)
        if plan.may_refuse and bool(refused.any()):
            raise RefusedStep
        return result

    def start(
        self, plan: StepPlan, games: Games, mask: Tensor, ask: Ask, given: GameState | None = None
    ) -> ResetResult:
        """See `Backend.start`."""
        numbers = _numbers(plan)
        if numbers is None or given is not None:
            return super().start(plan, games, mask, ask, given)
        result, _ = _launched(plan, numbers, games, flags_of(mask), numbers.start)
        return ResetResult(result.games, result.points, result.coords)

    def _moved(
        self, state: GameState, coords: Tensor, axis: Tensor, spec: GameSpec
    ) -> tuple[GameState, Tensor, Tensor]:
        """See `FusedBackend`; an axis outside 0..D-1 is no move: nothing is looked at."""
        num_games, device = state.num_games, state.device
        after = GameState(
            torch.empty_like(state.points, memory_format=torch.contiguous_format),
            torch.empty_like(state.count, memory_format=torch.contiguous_format),
        )
        moved, overflow = torch.empty(2, num_games, dtype=torch.bool, device=device).unbind()
        launch(
            move_games, num_games, spec, device, state.points.contiguous(),
            state.count.contiguous(), flags_of(coords), axis.contiguous(), after.points,
            after.count, flags_of(moved), flags_of(overflow), num_games,
            REPOSITION=spec.reposition, AXES=cut(spec.max_num_points, spec.dimension).axes,
        )  # fmt: skip
        return after, moved, overflow

    def _drawn(self, spec: GameSpec, rng: RowRandom) -> GameState:
        (num_games,), device = rng.key.shape, rng.key.device
        shape = (num_games, spec.max_num_points, spec.dimension)
        state = GameState(
            torch.empty(shape, dtype=torch.int64, device=device), torch.empty_like(rng.key)
        )
        launch(
            draw_games, num_games, spec, device, rng.key.contiguous(), state.points, state.count,
            num_games, spec.max_num_points, spec.max_value + 1, spec.start_attempts,
            REPOSITION=spec.reposition, DRAWN_AXES=drawn_axes(spec),
        )  # fmt: skip
        return state

    def observe_points(self, state: GameState, scale: bool = True) -> Tensor:
        """See `resgym.game.rules.observe_points`."""
        num_games, num_points, dimension = state.points.shape
        seen = torch.empty(state.points.shape, device=state.device)
        launch(
            observe_games, num_games, GameSpec(dimension, num_points), state.device,
            state.points.contiguous(), state.count.contiguous(), seen, num_games, SCALE=bool(scale),
        )  # fmt: skip
        return seen
