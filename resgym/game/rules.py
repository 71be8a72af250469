"""The rule of the game: one move of a host and an agent on N positions at once.

The host names a set I of at least two axes, the agent an axis i in I; coordinate i of every point
becomes the sum of its coordinates in I, and the points that no longer matter are dropped. The
plain-integer statement of the same rule is ``tests/reference/rule.py``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from resgym.game.dominance import used_rows
from resgym.game.spec import MAX_COORDINATE, GameSpec
from resgym.game.state import GameState, canonical_state

__all__ = ["is_legal", "move"]


def is_legal(coords: Tensor, axis: Tensor) -> Tensor:
    """Bool [N]: a host's set, bool [N, D], has two axes or more and the agent's axis, int64 [N]."""
    chosen = coords.gather(1, axis[:, None])[:, 0]
    return chosen & (coords.sum(1) >= 2)


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
    alive = torch.arange(width, device=axis.device)[:, None] < state.count
    playable = is_legal(coords, axis) & ~state.finished()
    overflow = playable & ((total > MAX_COORDINATE) & alive).any(0)
    moved = playable & ~overflow
    axes = torch.arange(spec.dimension, device=axis.device)
    target = (axes[:, None] == axis) & moved
    columns = torch.where(target[:, None], total, columns)
    # Positions that did not move are canonical already and come out as they are.
    return canonical_state(columns, state.count, spec), overflow
