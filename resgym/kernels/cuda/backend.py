"""The hot operations on an accelerator: one Triton kernel each, without a wait for the device."""

from __future__ import annotations

import torch
from torch import Tensor

from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec
from resgym.game.state import GameState, canonical_state, where_state
from resgym.kernels.cuda.grids import cut, drawn_axes, flags_of, launch
from resgym.kernels.cuda.kernels import draw_games, move_games, observe_games

__all__ = ["move", "observe_points", "random_starts"]


def move(
    state: GameState, coords: Tensor, axis: Tensor, spec: GameSpec
) -> tuple[GameState, Tensor]:
    """As `resgym.game.rules.move`; an axis outside 0..D-1 is no move: nothing is looked at."""
    num_games, device = state.num_games, state.device
    after = GameState(
        torch.empty_like(state.points, memory_format=torch.contiguous_format),
        torch.empty_like(state.count, memory_format=torch.contiguous_format),
    )
    moved, overflow = torch.empty(2, num_games, dtype=torch.bool, device=device).unbind()
    newton = spec.polytope == "newton"
    launch(
        move_games, num_games, spec, device, state.points.contiguous(), state.count.contiguous(),
        flags_of(coords.to(torch.bool)), axis.contiguous(), after.points, after.count,
        flags_of(moved), flags_of(overflow), num_games, REPOSITION=spec.reposition and not newton,
        AXES=cut(spec.max_num_points, spec.dimension).axes,
    )  # fmt: skip
    if newton:
        after = where_state(moved, _vertices(after, spec), state)
    return after, overflow


def _vertices(state: GameState, spec: GameSpec) -> GameState:
    """The vertices among minimal points, by the reference."""
    return canonical_state(state.points.permute(2, 1, 0).contiguous(), state.count, spec)


def random_starts(spec: GameSpec, rng: RowRandom) -> GameState:
    """As `resgym.game.starts.random_starts`."""
    if spec.max_num_points < 2:
        raise ValueError("max_num_points must be at least 2 for random starts, got 1")
    (num_games,), device = rng.key.shape, rng.key.device
    shape = (num_games, spec.max_num_points, spec.dimension)
    state = GameState(
        torch.empty(shape, dtype=torch.int64, device=device), torch.empty_like(rng.key)
    )
    newton = spec.polytope == "newton"
    launch(
        draw_games, num_games, spec, device, rng.key.contiguous(), state.points, state.count,
        num_games, spec.max_num_points, spec.max_value + 1, spec.start_attempts,
        REPOSITION=spec.reposition and not newton, DRAWN_AXES=drawn_axes(spec),
    )  # fmt: skip
    # A position of several minimal points has several vertices: no start is finished after all.
    return _vertices(state, spec) if newton else state


def observe_points(state: GameState, scale: bool = True) -> Tensor:
    """As `resgym.game.observation.observe_points`."""
    num_games, num_points, dimension = state.points.shape
    seen = torch.empty(state.points.shape, device=state.device)
    launch(
        observe_games, num_games, GameSpec(dimension, num_points), state.device,
        state.points.contiguous(), state.count.contiguous(), seen, num_games, SCALE=bool(scale),
    )  # fmt: skip
    return seen
