"""`resgym.kernels.step` by one Triton kernel: allocates the results and launches it."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import torch
from torch import Tensor

from resgym.game.actions import action_axes
from resgym.kernels.cuda.grids import cut, drawn_axes, flags_of, launch
from resgym.kernels.cuda.kernels import start_games, step_games
from resgym.kernels.step import (
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

__all__ = ["play_start", "play_step"]

# Opponents that play inside the kernel; it takes the index.
AGENTS = ("random", "choose_first", "choose_last")
HOSTS = ("all_coord", "random", "random_pair")


class _Settings(NamedTuple):
    """What a plan comes to: numbers and constants of the kernels."""

    step: dict[str, Any]
    start: dict[str, Any]
    limit: int
    drawn: tuple[int, int, int]
    pairs: bool
    refuses: bool
    same_step: bool
    both: bool


@lru_cache(maxsize=256)
def _settings(plan: StepPlan) -> _Settings | None:
    """The plan as numbers, or None for what no kernel plays."""
    spec, starts = plan.spec, plan.start_spec
    opponent = opponent_number(plan, AGENTS, HOSTS)
    if opponent is None:
        return None
    shared = {
        "SEAT": SEATS.index(plan.seat),
        "OPPONENT": opponent,
        "SCALE": plan.scale_observation,
        "REPOSITION": spec.reposition,
        # Of the game, not of the starts: a curriculum shall not compile anew.
        "DRAWN_AXES": drawn_axes(spec),
    }
    return _Settings(
        step={
            **shared,
            "REWARD": REWARDS.index(plan.reward),
            "ON_ILLEGAL": ON_ILLEGAL.index(plan.invalid_action),
            "MODE": MODES.index(plan.autoreset_mode),
            "AXES": cut(spec.max_num_points, spec.dimension).axes,
        },
        start=shared,
        limit=NO_LIMIT if plan.max_episode_steps is None else plan.max_episode_steps,
        drawn=(starts.max_num_points, starts.max_value + 1, starts.start_attempts),
        pairs=plan.opponent == "random_pair",
        refuses=plan.invalid_action == "error" or plan.autoreset_mode == "DISABLED",
        same_step=plan.autoreset_mode == "SAME_STEP",
        both=plan.seat == "both",
    )


@lru_cache(maxsize=64)
def _sets(dimension: int, pairs: bool, device: torch.device) -> Tensor:
    """int64 [A]: the sets of the host's actions, or all pairs in lexicographic order."""
    chosen = combinations(range(dimension), 2) if pairs else action_axes(dimension)
    numbers = [sum(1 << axis for axis in axes) for axes in chosen]
    return torch.tensor(numbers, dtype=torch.int64, device=device)


def _arguments(fields: Fields) -> list[Tensor]:
    """The fields as the kernels read them."""
    return [
        flags_of(field) if field.dtype == torch.bool else field.contiguous() for field in fields
    ]


def _kept(fields: Fields, points: Tensor, coords: Tensor, returns: Tensor, ended: Tensor, numbers):
    """The fields after a kernel; ``numbers`` are its first five."""
    count, half_moves, episode, key, lengths = numbers
    return Fields(
        points, count, coords, half_moves, fields.seed, episode, key, returns, lengths, ended
    )


def play_step(plan: StepPlan, fields: Fields, actions: Tensor, memory: Any = None) -> Played | None:
    """Plays one step of all rows, without a wait for the device unless a step can be refused.

    Args:
        plan: what kind of step. With ``invalid_action="error"`` or in DISABLED mode one value is
            read back, because an error has to be raised before anything changes.
        fields: tensors on one device; only read.
        actions: int64 [N].
        memory: not used.

    Returns:
        The results and the fields after the step as tensors; what is seen of ended episodes and
        their statistics are always there. None, with nothing done, for a plan that no kernel plays,
        and where the reference would raise an error.
    """
    settings = _settings(plan)
    if settings is None:
        return None
    num_games, _, dimension = shape = fields.points.shape
    device = fields.points.device
    points = torch.empty(shape, dtype=torch.int64, device=device)
    numbers = torch.empty(6, num_games, dtype=torch.int64, device=device)
    floats = torch.empty(3, num_games, device=device)
    flags = torch.empty(6, num_games, dtype=torch.bool, device=device)
    coords = torch.empty(num_games, dimension, dtype=torch.bool, device=device)
    seen = torch.empty(shape, device=device)
    seen_coords = torch.empty(num_games, dimension, dtype=torch.int8, device=device)
    rewards = torch.empty(num_games, 2, device=device) if settings.both else floats
    final_seen, final_coords = seen, seen_coords
    if settings.same_step:
        final_seen, final_coords = torch.empty_like(seen), torch.empty_like(seen_coords)
    table = _sets(dimension, settings.pairs, device)
    launch(
        step_games, num_games, plan.spec, device, actions.contiguous(), table, *_arguments(fields),
        points, flags_of(coords), numbers, floats, flags_of(flags), rewards, seen, seen_coords,
        final_seen, final_coords, num_games, len(table), settings.limit, *settings.drawn,
        **settings.step,
    )  # fmt: skip
    waiting, terminated, truncated, overflow, ended, refused = flags.unbind()
    if settings.refuses and bool(refused.any()):
        return None
    *kept, final_lengths = numbers.unbind()
    returns, reward, final_returns = floats.unbind()
    return Played(
        fields=_kept(fields, points, coords, returns, waiting, kept),
        memory=None,
        points=seen,
        coords=seen_coords,
        reward=reward,
        rewards=rewards if settings.both else None,
        terminated=terminated,
        truncated=truncated,
        overflow=overflow,
        ended=ended,
        final_points=final_seen if settings.same_step else None,
        final_coords=final_coords if settings.same_step else None,
        episode_returns=final_returns,
        episode_lengths=final_lengths,
    )


def play_start(plan: StepPlan, fields: Fields, mask: Tensor, memory: Any = None) -> Started | None:
    """Starts episodes from random positions in the rows of ``mask``, bool [N].

    Returns:
        The observation of all rows and the fields as tensors; None, with nothing done, for a plan
        that no kernel plays.
    """
    settings = _settings(plan)
    if settings is None:
        return None
    num_games, _, dimension = shape = fields.points.shape
    device = fields.points.device
    points = torch.empty(shape, dtype=torch.int64, device=device)
    numbers = torch.empty(5, num_games, dtype=torch.int64, device=device)
    returns = torch.empty(num_games, device=device)
    ended = torch.empty(num_games, dtype=torch.bool, device=device)
    coords = torch.empty(num_games, dimension, dtype=torch.bool, device=device)
    seen = torch.empty(shape, device=device)
    seen_coords = torch.empty(num_games, dimension, dtype=torch.int8, device=device)
    table = _sets(dimension, settings.pairs, device)
    launch(
        start_games, num_games, plan.spec, device, flags_of(mask), table, *_arguments(fields),
        points, flags_of(coords), numbers, returns, flags_of(ended), seen, seen_coords, num_games,
        len(table), *settings.drawn, **settings.start,
    )  # fmt: skip
    after = _kept(fields, points, coords, returns, ended, numbers.unbind())
    return Started(fields=after, memory=None, points=seen, coords=seen_coords)
