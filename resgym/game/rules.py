"""The rule on N positions at once: a move of a host and an agent, starts, and what a player sees.

The host names a set I of at least two axes, the agent an axis i in I; coordinate i of every point
becomes the sum of its coordinates in I, and the points that no longer matter are dropped. The
plain-integer statement of the same rule is ``tests/reference/rule.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from resgym.game import devices
from resgym.game.dominance import used_rows
from resgym.game.rng import RowRandom
from resgym.game.spec import MAX_COORDINATE, MAX_START_ATTEMPTS, GameSpec
from resgym.game.state import (
    GameState,
    canonical_state,
    state_from_points,
    where_state,
    with_weights,
)
from resgym.game.variants import BASIC

# What the weights and the distinguished points of starts are drawn from, behind all attempts.
WEIGHTS_SPLIT, MARKED_SPLIT = MAX_START_ATTEMPTS, MAX_START_ATTEMPTS + 1


def is_legal(coords: Tensor, axis: Tensor, state: GameState | None = None) -> Tensor:
    """Bool [N]: the host may name the set, bool [N, D], and the agent choose the axis, int64 [N].

    With the default rule the set has two axes or more, the axis among them, in every position;
    other rules look at it.
    """
    if state is None:
        return coords.gather(1, axis[:, None])[:, 0] & (coords.sum(1) >= BASIC.least_axes)
    chosen = state.answers(coords).gather(1, axis[:, None])[:, 0]
    return chosen & state.rule.permits(state.points, state.count, coords)


def move(
    state: GameState, coords: Tensor, axis: Tensor, spec: GameSpec
) -> tuple[GameState, Tensor]:
    """Plays one move in every game.

    The hosts' sets are bool [N, D], the agents' axes int64 [N], 0..D-1.

    Returns:
        state: the next positions. Finished games, illegal moves and moves that would overflow
            leave their position as it is.
        overflow: bool [N], where a coordinate would have passed ``MAX_COORDINATE``.
    """
    width = used_rows(state.count, state.points.shape[1])
    columns = state.points[:, :width].permute(2, 1, 0).contiguous()
    total = (columns * coords.t()[:, None]).sum(0)
    if state.rule.unit:
        total = total - state.rule.unit
    alive = torch.arange(width, device=axis.device)[:, None] < state.count
    playable = is_legal(coords, axis, state) & ~state.finished()
    overflow = playable & ((total > MAX_COORDINATE) & alive).any(0)
    moved = playable & ~overflow
    axes = torch.arange(spec.dimension, device=axis.device)
    target = (axes[:, None] == axis) & moved
    columns = torch.where(target[:, None], total, columns)
    # Positions that did not move are canonical already and come out as they are.
    after = canonical_state(columns, state.count, spec)
    if state.rule.extra_rows:
        lowest = torch.where(alive, columns, MAX_COORDINATE).amin(1).t() * spec.reposition
        after = _weighted(state, coords, axis, moved, lowest, after)
    return after, overflow


def _weighted(
    state: GameState, coords: Tensor, axis: Tensor, moved: Tensor, lowest: Tensor, after: GameState
) -> GameState:
    """Positions of rule ``thom`` after a move: their weights and distinguished points too.

    The new points stand in ``after``; where ``moved``, bool [N], ``lowest``, int64 [N, D], was
    taken off them.
    """
    weights, marked = state.points[:, -2], state.points[:, -1]
    place = axis[:, None]
    least = weights.gather(1, place)
    fallen = torch.where(coords, weights - least, weights).scatter(1, place, least)
    shifted = marked.scatter(1, place, (marked * coords).sum(1, keepdim=True)) - lowest
    return with_weights(
        after,
        torch.where(moved[:, None], fallen, weights),
        torch.where(moved[:, None], shifted, marked),
    )


def check_startable(spec: GameSpec) -> None:
    """Raises ValueError if every start of a game would be finished."""
    if spec.max_num_points < 2 and spec.rule != "polyhedra":
        raise ValueError("max_num_points must be at least 2 for random starts, got 1")


def _draw(spec: GameSpec, rng: RowRandom) -> GameState:
    values = rng.integers(spec.max_value + 1, n=spec.max_num_points * spec.dimension)
    columns = values.view(-1, spec.max_num_points, spec.dimension).permute(2, 1, 0).contiguous()
    count = torch.full_like(rng.key, spec.max_num_points)
    return canonical_state(columns, count, spec)


def random_starts(spec: GameSpec, rng: RowRandom) -> GameState:
    """Positions drawn uniformly on 0..max_value inclusive, finished ones drawn again.

    After ``spec.start_attempts`` draws (met only in tiny games, where almost every start is
    finished) a row gets {(1, 0, ..), (0, 1, ..)}, in units. The numbers are those of
    `Stream.START`.

    Raises:
        ValueError: ``max_num_points`` is 1.
    """
    check_startable(spec)
    if spec.rule == "thom":
        return draw_weights(random_starts(replace(spec, rule="basic"), rng), rng)
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
    fixed = torch.full_like(state.points, -1)
    corners = torch.eye(2, spec.dimension, dtype=torch.int64, device=state.device) * spec.unit
    number = min(2, spec.max_num_points)
    fixed[:, :number] = corners[:number]
    fixed_start = GameState(fixed, torch.full_like(state.count, number), state.rule)
    return where_state(state.finished(), fixed_start, state)


def draw_weights(state: GameState, rng: RowRandom) -> GameState:
    """Starts of rule ``thom`` from their points: weights of 1..D, and any point distinguished."""
    dimension = state.points.shape[2]
    weights = rng.split(WEIGHTS_SPLIT).integers(dimension, n=dimension) + 1
    index = rng.split(MARKED_SPLIT).integers(state.count)
    marked = state.points.gather(1, index[:, None, None].expand(-1, 1, dimension))[:, 0]
    return with_weights(state, weights, marked)


def start_positions(spec: GameSpec, rng: RowRandom, starts: GameState | None = None) -> GameState:
    """`random_starts`, or of a set of M ``starts`` one for each row, drawn uniformly."""
    return random_starts(spec, rng) if starts is None else drawn_from(starts, rng)


def drawn_from(starts: GameState, rng: RowRandom) -> GameState:
    """One of M positions for each row of random numbers, drawn uniformly."""
    return starts.select(rng.integers(starts.num_games))


def given_starts(
    points: Any, spec: GameSpec, num_games: int, device: torch.device, weights: Any = None
) -> GameState:
    """N positions from what a caller gives: one game for all rows, or N; see `state_from_points`.

    Raises:
        ValueError, TypeError: they are no unfinished positions of this game.
    """
    given = unfinished_positions(points, spec, device, weights)
    if given.num_games not in (1, num_games):
        raise ValueError(
            f"points must hold one game or {num_games} (num_envs), got {given.num_games}"
        )
    points, count = given.points.expand(num_games, -1, -1), given.count.expand(num_games)
    return GameState(points, count, given.rule)


def unfinished_positions(
    points: Any, spec: GameSpec, device: torch.device | str, weights: Any = None
) -> GameState:
    """As `state_from_points`; a ValueError if a position is finished."""
    given = state_from_points(points, spec, device, weights)
    finished = given.finished()
    if bool(finished.any()):
        row = int(finished.nonzero()[0, 0])
        points = given.point_lists()[row]
        over = f"is over at {points}"
        if len(points) == 1 and spec.rule != "polyhedra":
            over = f"is down to the one point {points[0]}"
        raise ValueError(f"points must be unfinished positions, but game {row} {over}")
    return given


def observe_points(state: GameState, scale: bool = True) -> Tensor:
    """What a player sees, in an order that does not depend on history: a new tensor.

    float32 [N, P, D], coordinate j of the p-th point in descending lexicographic order divided by
    the largest coordinate of the position (1 if that is 0), or 0..2^59 unscaled; absent rows are
    -1. The state itself stays exact; only this copy is rounded.
    """
    if state.rule.extra_rows:
        return _observe_weighted(state, scale)
    if not scale:
        return state.points.to(torch.float32)
    observed = torch.full(state.points.shape, -1.0, device=state.device)
    width = used_rows(state.count, state.points.shape[1])
    points = state.points[:, :width]
    # Divided as float64 and rounded once more, which IEEE arithmetic fixes on every device.
    largest = points.amax((1, 2), keepdim=True).clamp(min=1).to(torch.float64)
    observed[:, :width] = torch.where(points < 0, -1.0, points.to(torch.float64) / largest)
    return observed


def _observe_weighted(state: GameState, scale: bool) -> Tensor:
    """As `observe_points` for rule ``thom``: P + 2 rows.

    Weights come divided by the largest one, the distinguished point by the largest coordinate.
    """
    points, extra = state.points[:, :-2], state.points[:, -2:]
    seen = observe_points(GameState(points, state.count), scale)
    if not scale:
        return torch.cat([seen, extra.to(torch.float32)], 1)
    coordinates = torch.where(state.alive()[:, :-2, None], points, 0).amax((1, 2))
    largest = torch.stack([extra[:, 0].amax(1), coordinates], 1).clamp(min=1).to(torch.float64)
    shown = torch.where(extra < 0, -1.0, extra.to(torch.float64) / largest[:, :, None])
    return torch.cat([seen, shown.to(torch.float32)], 1)
