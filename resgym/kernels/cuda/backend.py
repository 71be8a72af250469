"""The backend of Triton kernels: a step is one launch, without a wait for the device."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import torch
from torch import Tensor

from resgym.game.actions import action_axes
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec
from resgym.game.state import GameState
from resgym.game.stepping import (
    AUTORESET_MODES,
    INVALID_ACTIONS,
    NO_LIMIT,
    SEATS,
    Ask,
    EpisodeState,
    Games,
    RefusedStep,
    ResetResult,
    StepPlan,
    StepResult,
)
from resgym.kernels.backend import FusedBackend
from resgym.kernels.cuda.grids import cut, drawn_axes, flags_of, launch
from resgym.kernels.cuda.kernels import (
    HOSTS,
    REWARD_NAMES,
    draw_games,
    move_games,
    observe_games,
    start_games,
    step_games,
)
from resgym.kernels.cuda.rules import AGENTS

__all__ = ["TritonBackend"]


class _Numbers(NamedTuple):
    """What a plan comes to: numbers and constants of the kernels."""

    step: dict[str, Any]
    start: dict[str, Any]
    limit: int
    drawn: tuple[int, int, int]
    pairs: bool


@lru_cache(maxsize=256)
def _numbers(plan: StepPlan) -> _Numbers | None:
    """The plan as numbers, or None for what no kernel plays."""
    opponent = TritonBackend.opponent_number(plan)
    if opponent is None or not TritonBackend.fits(plan):
        return None
    spec, starts = plan.spec, plan.start_spec
    shared = {
        "SEAT": SEATS.index(plan.seat),
        "OPPONENT": opponent,
        "SCALE": plan.scale_observation,
        "REPOSITION": spec.reposition,
        # Of the game, not of the starts: a curriculum shall not compile anew.
        "DRAWN_AXES": drawn_axes(spec),
    }
    return _Numbers(
        step={
            **shared,
            "REWARD": REWARD_NAMES.index(plan.reward),
            "ON_ILLEGAL": INVALID_ACTIONS.index(plan.invalid_action),
            "MODE": AUTORESET_MODES.index(plan.autoreset_mode),
            "AXES": cut(spec.max_num_points, spec.dimension).axes,
        },
        start=shared,
        limit=NO_LIMIT if plan.max_episode_steps is None else plan.max_episode_steps,
        drawn=(starts.max_num_points, starts.max_value + 1, starts.start_attempts),
        pairs=plan.opponent == "random_pair",
    )


@lru_cache(maxsize=64)
def _sets(dimension: int, pairs: bool, device: torch.device) -> Tensor:
    """int64 [A]: the sets of the host's actions, or all pairs in lexicographic order."""
    chosen = combinations(range(dimension), 2) if pairs else action_axes(dimension)
    numbers = [sum(1 << axis for axis in axes) for axes in chosen]
    return torch.tensor(numbers, dtype=torch.int64, device=device)


class _New(NamedTuple):
    """New tensors that both kernels write: the state but for a few fields, and what is seen."""

    points: Tensor
    coords: Tensor
    numbers: Tensor
    seen: Tensor
    seen_coords: Tensor


def _new(state: EpisodeState, num_numbers: int) -> _New:
    shape, device = state.points.shape, state.points.device
    return _New(
        points=torch.empty(shape, dtype=torch.int64, device=device),
        coords=torch.empty(state.coords.shape, dtype=torch.bool, device=device),
        numbers=torch.empty(num_numbers, len(state.counts), dtype=torch.int64, device=device),
        seen=torch.empty(shape, device=device),
        seen_coords=torch.empty(state.coords.shape, dtype=torch.int8, device=device),
    )


def _after(state: EpisodeState, new: _New, returns: Tensor, ended: Tensor) -> EpisodeState:
    count, half_moves, episode, key, lengths = new.numbers[:5].unbind()
    return EpisodeState(
        new.points, count, new.coords, half_moves, state.seed, episode, key, returns, lengths, ended
    )


def _arguments(state: EpisodeState) -> list[Tensor]:
    """The state as the kernels read it."""
    return [flags_of(field) if field.dtype == torch.bool else field.contiguous() for field in state]


class TritonBackend(FusedBackend):
    """One launch a step, opponents included."""

    name = "triton"
    agents = AGENTS
    hosts = HOSTS

    def step(self, plan: StepPlan, games: Games, actions: Tensor, ask: Ask) -> StepResult:
        """As `resgym.game.episode.step`.

        It waits for the device only if a step may be refused: with ``invalid_action="error"`` or in
        DISABLED mode one value is read back, because an error has to be raised before anything
        changes. What is seen of ended episodes and their statistics are always there.
        """
        numbers = _numbers(plan)
        if numbers is None:
            return super().step(plan, games, actions, ask)
        state = games.tensors()
        num_games, _, dimension = state.points.shape
        device = state.points.device
        new = _new(state, 6)
        floats = torch.empty(3, num_games, device=device)
        flags = torch.empty(6, num_games, dtype=torch.bool, device=device)
        both, same_step = plan.seat == "both", plan.autoreset_mode == "SAME_STEP"
        rewards = torch.empty(num_games, 2, device=device) if both else floats
        final, final_coords = new.seen, new.seen_coords
        if same_step:
            final, final_coords = torch.empty_like(final), torch.empty_like(final_coords)
        table = _sets(dimension, numbers.pairs, device)
        launch(
            step_games, num_games, plan.spec, device, actions.contiguous(), table,
            *_arguments(state), new.points, flags_of(new.coords), new.numbers, floats,
            flags_of(flags), rewards, new.seen, new.seen_coords, final, final_coords, num_games,
            len(table), numbers.limit, *numbers.drawn, **numbers.step,
        )  # fmt: skip
        waiting, terminated, truncated, overflow, ended, refused = flags.unbind()
        if plan.may_refuse and bool(refused.any()):
            raise RefusedStep
        returns, reward, final_returns = floats.unbind()
        return StepResult(
            games=_after(state, new, returns, waiting),
            points=new.seen,
            coords=new.seen_coords,
            reward=reward,
            rewards=rewards if both else None,
            terminated=terminated,
            truncated=truncated,
            overflow=overflow,
            ended=ended,
            final_points=final if same_step else None,
            final_coords=final_coords if same_step else None,
            episode_returns=final_returns,
            episode_lengths=new.numbers[5],
        )

    def start(
        self,
        plan: StepPlan,
        games: Games,
        mask: Tensor,
        ask: Ask,
        given: GameState | None = None,
    ) -> ResetResult:
        """Starts episodes in the rows of ``mask``; see `resgym.game.episode.start`."""
        numbers = _numbers(plan)
        if numbers is None or given is not None:
            return super().start(plan, games, mask, ask, given)
        state = games.tensors()
        num_games, _, dimension = state.points.shape
        device = state.points.device
        new = _new(state, 5)
        returns, ended = torch.empty_like(state.returns), torch.empty_like(state.ended)
        table = _sets(dimension, numbers.pairs, device)
        launch(
            start_games, num_games, plan.spec, device, flags_of(mask), table, *_arguments(state),
            new.points, flags_of(new.coords), new.numbers, returns, flags_of(ended), new.seen,
            new.seen_coords, num_games, len(table), *numbers.drawn, **numbers.start,
        )  # fmt: skip
        return ResetResult(_after(state, new, returns, ended), new.seen, new.seen_coords)

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
