"""The rule on N positions at once: moves, starts, and observations.

The host chooses a set I of at least two axes, the agent an axis i in I. Coordinate i of every point
becomes the sum of its coordinates in I, and points that no longer matter are dropped.
``tests/reference/rule.py`` states the same rule in plain integers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from resgym.game import devices
from resgym.game.pruning import used_rows
from resgym.game.rng import RowRandom
from resgym.game.spec import MAX_COORDINATE, MAX_START_ATTEMPTS, GameSpec
from resgym.game.state import (
    GameState,
    canonical_state,
    state_from_points,
    where_state,
    with_weights,
)

# The random words for weights and distinguished points of starts, after those of all attempts.
WEIGHTS_SPLIT = MAX_START_ATTEMPTS
MARKED_SPLIT = MAX_START_ATTEMPTS + 1


def move(
    state: GameState, coords: Tensor, axis: Tensor, spec: GameSpec
) -> tuple[GameState, Tensor]:
    """Play one move in every game.

    The hosts' sets are bool [N, D], the agents' axes int64 [N], 0..D-1.

    Returns:
        state: the next positions. Finished games, illegal moves and moves that would overflow leave
            their position unchanged.
        overflow: bool [N], where a coordinate would have exceeded ``MAX_COORDINATE``.
    """
    columns = state.columns()
    total = state.rule.sums(columns, coords)
    alive = columns[0] >= 0
    index = axis[:, None]
    legal = state.answers(coords).gather(1, index)[:, 0] & state.rule.permits(state, coords)
    playable = legal & ~state.finished()
    overflow = playable & ((total > MAX_COORDINATE) & alive).any(0)
    moved = playable & ~overflow
    axes = torch.arange(spec.dimension, device=axis.device)
    target = (axes[:, None] == axis) & moved
    columns = torch.where(target[:, None], total, columns)
    # Positions that did not move are canonical already and stay the same.
    after = canonical_state(columns, state.count, spec)
    if state.rule.extra_rows:  # weights and distinguished points of rule ``thom``
        weights, marked = state.points[:, -2:].unbind(1)
        changed = moved[:, None]
        # The agent's axis has the least weight of the set. It keeps it, the others lose it.
        least = weights.gather(1, index)
        reduced = torch.where(coords, weights - least, weights).scatter(1, index, least)
        shifted = marked.scatter(1, index, (marked * coords).sum(1, keepdim=True))
        if spec.reposition:
            shifted = shifted - torch.where(alive, columns, MAX_COORDINATE).amin(1).t()
        weights = torch.where(changed, reduced, weights)
        marked = torch.where(changed, shifted, marked)
        after = with_weights(after, weights, marked, spec)
    return after, overflow


def check_startable(spec: GameSpec) -> None:
    """Raise ValueError if every start of a game would be finished."""
    if spec.max_num_points < 2 and spec.rule != "polyhedra":
        raise ValueError("max_num_points must be at least 2 for random starts, got 1")


def _draw(spec: GameSpec, rng: RowRandom, sizes: GameSpec) -> GameState:
    number = sizes.max_num_points
    values = rng.integers(sizes.max_value + 1, n=number * spec.dimension)
    columns = values.view(-1, number, spec.dimension).permute(2, 1, 0).contiguous()
    count = torch.full_like(rng.key, number)
    return canonical_state(columns, count, spec)


def random_starts(spec: GameSpec, rng: RowRandom, sizes: GameSpec | None = None) -> GameState:
    """Draw positions uniformly on 0..max_value inclusive; finished ones are drawn again.

    After ``start_attempts`` draws (only in tiny games, where almost every start is finished) a row
    gets {(1, 0, ..), (0, 1, ..)}, in units. The random numbers are those of `Stream.START`. The
    numbers of points and values are those of ``sizes`` if they are smaller than the game's.

    Raises:
        ValueError: ``max_num_points`` is 1.
    """
    sizes = sizes or spec
    check_startable(sizes)
    if spec.rule == "thom":
        # Weights are 1..D, and the distinguished point is drawn, too.
        state = random_starts(replace(spec, rule="basic"), rng, sizes)
        weights = rng.split(WEIGHTS_SPLIT).integers(spec.dimension, n=spec.dimension) + 1
        index = rng.split(MARKED_SPLIT).integers(state.count)[:, None, None]
        marked = state.points.gather(1, index.expand(-1, 1, spec.dimension))[:, 0]
        return with_weights(state, weights, marked, spec)
    state = _draw(spec, rng.split(0), sizes)
    read_values = devices.is_host_memory(state.device)
    for attempt in range(1, sizes.start_attempts):
        pending = state.finished()
        if read_values:
            rows = pending.nonzero()[:, 0]
            if not len(rows):
                return state
            fresh = _draw(spec, rng.select(rows).split(attempt), sizes)
            state.points[rows] = fresh.points
            state.count[rows] = fresh.count
        else:
            # On an accelerator no data are read: every row is drawn, and the pending ones are used.
            state = where_state(pending, _draw(spec, rng.split(attempt), sizes), state)
    number = min(2, sizes.max_num_points)
    corners = torch.eye(spec.dimension, number, dtype=torch.int64, device=state.device) * spec.unit
    fixed = canonical_state(corners[..., None], state.count.new_full((1,), number), spec)
    return where_state(state.finished(), fixed, state)


def start_positions(
    spec: GameSpec, rng: RowRandom, starts: GameState | None, sizes: GameSpec | None = None
) -> GameState:
    """Return `random_starts`, or one of M ``starts`` for each row, drawn uniformly."""
    if starts is None:
        return random_starts(spec, rng, sizes)
    return starts.select(rng.integers(starts.num_games))


def given_starts(
    points: Any, spec: GameSpec, num_games: int, device: torch.device, weights: Any
) -> GameState:
    """Make N positions from one game for all rows, or from N games; see `state_from_points`.

    Raises:
        ValueError, TypeError: they are not unfinished positions of this game.
    """
    given = unfinished_positions(points, spec, device, weights)
    if given.num_games not in (1, num_games):
        raise ValueError(
            f"points must hold one game or {num_games} (num_envs), got {given.num_games}"
        )
    return given.select(torch.arange(num_games, device=device) % given.num_games)


def unfinished_positions(
    points: Any, spec: GameSpec, device: torch.device | str, weights: Any = None
) -> GameState:
    """Return `state_from_points`; raise ValueError if a position is finished."""
    given = state_from_points(points, spec, device, weights)
    finished = given.finished()
    if finished.any():
        row = int(finished.nonzero()[0, 0])
        position = given.point_lists()[row]
        problem = f"is over at {position}"
        if len(position) == 1 and spec.rule != "polyhedra":
            problem = f"has only the point {position[0]} left"
        raise ValueError(f"points must be unfinished positions, but game {row} {problem}")
    return given


def observe_points(state: GameState, scale: bool = True) -> Tensor:
    """Return what a player sees, as a new tensor; the order does not depend on history.

    float32 [N, P, D]: coordinate j of the p-th point in descending lexicographic order, divided by
    the largest coordinate of the position (by 1 if that is 0), or unscaled in 0..2^59. Absent rows
    are -1. The state itself stays exact; only this copy is rounded. With rule ``thom`` two rows
    follow: the weights, divided by the largest one, and the distinguished point.
    """
    if not scale:
        return state.points.to(torch.float32)
    observed = torch.full_like(state.points, -1.0, dtype=torch.float32)
    width = used_rows(state.count, state.points.shape[1] - state.rule.extra_rows)
    points = state.points[:, :width]
    largest = points.amax((1, 2), keepdim=True)
    observed[:, :width] = _divided(points, largest)
    if state.rule.extra_rows:
        weights = state.points[:, -2:-1]
        observed[:, -2:-1] = _divided(weights, weights.amax(2, keepdim=True))
        observed[:, -1:] = _divided(state.points[:, -1:], largest)
    return observed


def _divided(points: Tensor, largest: Tensor) -> Tensor:
    # Divided as float64 and rounded once more, which IEEE arithmetic fixes on every device.
    return torch.where(points < 0, -1.0, points / largest.clamp(min=1).to(torch.float64))
