"""The game as pure functions on batches of positions: state in, state out, no environment.

For planning and for learning on the exact model::

    from resgym import functional as game

    spec = resgym.GameSpec(dimension=3, max_num_points=20, max_value=20)
    state = game.starts(spec, 64, seed=0)
    after, overflow = game.move(state, coords, axis, spec)
    following, overflow = game.successors(state, spec)
    seen = game.observe(state)

Letters: N positions, P rows of points, D axes, K moves: pairs of a host's set and an answer to it,
9 for D = 3, in the order of `moves`. Positions are `resgym.GameState`: ``points`` int64 [N, P, D],
rows of absent points -1, and ``count`` int64 [N]; `resgym.state_from_points` makes one of lists,
``state.finished()`` tells which games are over. Without ``spec``, the game has the rule of the
positions and otherwise the defaults of `resgym.GameSpec`.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from resgym.game.rules import observe_points as observe
from resgym.game.spec import GameSpec, host_action_table
from resgym.game.state import GameState, check_tensor
from resgym.kernels.dispatch import resolve_backend
from resgym.measure.rho import rho_starts

__all__ = ["move", "moves", "observe", "starts", "successors"]


def starts(spec: GameSpec, number: int, seed: int = 0) -> GameState:
    """This many random unfinished positions, those that `resgym.rho` plays with the same seed.

    Raises:
        ValueError, TypeError: a number is out of range, or every start of the game is finished.
    """
    return rho_starts(spec, number, seed)


@cache
def moves(dimension: int, least_axes: int = 2) -> tuple[Tensor, Tensor]:
    """All moves: numbers of the hosts' sets, int64 [K], and the answers, int64 [K]; set by set.

    Sets have at least ``least_axes`` axes: 2, or 1 with rule ``polyhedra``.
    """
    action, axis = host_action_table(dimension, least=least_axes).nonzero().unbind(1)
    return action, axis


def move(
    state: GameState, coords: Tensor, axis: Tensor, spec: GameSpec | None = None
) -> tuple[GameState, Tensor]:
    """Play one move in every game.

    Args:
        state: N positions.
        coords: the hosts' sets, bool [N, D].
        axis: the agents' answers, int64 [N], each in its set.
        spec: the game.

    Returns:
        The next positions, and bool [N], where a coordinate would have passed 2^59. These,
        finished games and illegal moves leave their position as it is.
    """
    number, rows, dimension = state.points.shape
    check_tensor("coords", coords, torch.bool, (number, dimension))
    check_tensor("axis", axis, torch.int64, (number,))
    if spec is None:
        known, rows = state.rule.spec, rows - state.rule.extra_rows
        spec = GameSpec(dimension, rows, rule=known.rule, unit=known.unit)
    return resolve_backend("auto", state.device, spec).move(state, coords, axis, spec)


def successors(state: GameState, spec: GameSpec | None = None) -> tuple[GameState, Tensor]:
    """Return what every move leads to; one that is illegal leaves the position as it is.

    Returns:
        N * K positions, those of position n from row n * K on, in the order of `moves`; and bool
        [N, K], where a coordinate would have passed 2^59, which leaves the position as it is.
    """
    number, dimension, least = state.num_games, state.dimension, state.rule.spec.least_axes
    action, axis = (each.to(state.device) for each in moves(dimension, least))
    coords = host_action_table(dimension, state.device, least)[action].repeat(number, 1)
    row = torch.arange(number, device=state.device).repeat_interleave(len(axis))
    after, overflow = move(state.select(row), coords, axis.repeat(number), spec)
    return after, overflow.view(number, len(axis))
