"""Random starting positions."""

from __future__ import annotations

from typing import Any

import torch

from resgym.game import devices
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec
from resgym.game.state import GameState, canonical_state, state_from_points, where_state

__all__ = ["check_startable", "given_starts", "random_starts"]


def check_startable(spec: GameSpec) -> None:
    """Raises ValueError if every start of a game would be finished."""
    if spec.max_num_points < 2:
        raise ValueError("max_num_points must be at least 2 for random starts, got 1")


def _draw(spec: GameSpec, rng: RowRandom) -> GameState:
    values = rng.integers(spec.max_value + 1, n=spec.max_num_points * spec.dimension)
    columns = values.view(-1, spec.max_num_points, spec.dimension).permute(2, 1, 0).contiguous()
    count = torch.full_like(rng.key, spec.max_num_points)
    return canonical_state(columns, count, spec)


def _fixed_start(spec: GameSpec, like: GameState) -> GameState:
    """The unfinished position {(1, 0, ..), (0, 1, ..)} for every row of ``like``."""
    points = torch.zeros(2, spec.dimension, dtype=torch.int64)
    points[0, 0] = points[1, 1] = 1
    start = state_from_points(points, spec, like.device)
    return GameState(start.points.expand_as(like.points), start.count.expand_as(like.count))


def random_starts(spec: GameSpec, rng: RowRandom) -> GameState:
    """Positions drawn uniformly on 0..max_value inclusive, finished ones drawn again.

    After ``spec.start_attempts`` draws (met only in tiny games, where almost every start is
    finished) a row gets {(1, 0, ..), (0, 1, ..)}. The numbers are those of `Stream.START`.

    Raises:
        ValueError: ``max_num_points`` is 1.
    """
    check_startable(spec)
    state = _draw(spec, rng.split(0))
    looking = devices.is_host_memory(state.device)
    for attempt in range(1, spec.start_attempts):
        pending = state.finished()
        if looking:
            rows = pending.nonzero()[:, 0]
            if not len(rows):
                return state
            fresh = _draw(spec, rng.select(rows).split(attempt))
            state.points[rows] = fresh.points
            state.count[rows] = fresh.count
        else:
            # No look at the data on an accelerator: every row is drawn, the pending ones are taken.
            state = where_state(pending, _draw(spec, rng.split(attempt)), state)
    return where_state(state.finished(), _fixed_start(spec, state), state)


def given_starts(points: Any, spec: GameSpec, num_games: int, device: torch.device) -> GameState:
    """N positions from what a caller gives: one game for all rows, or N; see `state_from_points`.

    Raises:
        ValueError, TypeError: they are no unfinished positions of this game.
    """
    given = state_from_points(points, spec, device)
    if given.num_games not in (1, num_games):
        raise ValueError(
            f"points must hold one game or {num_games} (num_envs), got {given.num_games}"
        )
    finished = given.finished()
    if bool(finished.any()):
        row = int(finished.nonzero()[0, 0])
        raise ValueError(
            f"points must be unfinished positions, but game {row} is down to the one point "
            f"{given.point_lists()[row][0]}"
        )
    return GameState(given.points.expand(num_games, -1, -1), given.count.expand(num_games))
