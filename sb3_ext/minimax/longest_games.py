"""What each set of a position costs a host that then plays as it does now, exactly."""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor

from resgym import functional
from resgym.game.spec import GameSpec
from resgym.game.state import GameState, canonical_state
from resgym.measure.worst_case import next_positions
from resgym.players import Player
from sb3_ext.minimax.algorithm import worst_answers

ROWS_AT_ONCE = 8192
"""Positions that a host is asked about together."""

LIMIT = 500_000
"""Positions after which no further ones are followed; longer games then count as too long."""

Piece: TypeAlias = tuple[Tensor, GameState]


def set_costs(player: Player, state: GameState, most: int) -> Tensor:
    """Moves of the longest game that begins with each of the host's sets, int64 [N, A].

    A host that takes the set of least cost is at least as good: a step of policy iteration.

    Args:
        player: see `longest_games`.
        state: N unfinished positions.
        most: stands for all longer games; costs are 1 to `most`.
    """
    after, overflow = functional.successors(state)
    longest = longest_games(player, after, most - 1).view(overflow.shape)
    longest[overflow] = most - 1
    return 1 - worst_answers(-longest, state.points.shape[2])


def longest_games(player: Player, state: GameState, most: int, limit: int = LIMIT) -> Tensor:
    """Moves of the longest game against a host from each of N positions, int64 [N], 0 to `most`.

    All answers are followed from all positions together; positions that differ by a shift are
    followed once.

    Args:
        player: a host that draws nothing and remembers nothing.
        state: N positions, of the basic rule.
        most: stands for all longer games.
        limit: positions after which none is followed; longer games then count as `most`.
    """
    points = state.points[:, : int(state.count.max())]
    spec = GameSpec(dimension=points.shape[2], max_num_points=points.shape[1], reposition=True)
    state = canonical_state(points.permute(2, 1, 0).contiguous(), state.count, spec)
    places: dict[bytes, int] = {}
    asked, pieces = _met(state, places)
    edges = [torch.zeros(2, 0, dtype=torch.int64)]
    for _ in range(most):
        if len(places) > limit:
            break
        followed, pieces = pieces, []
        for place, some in followed:
            # Where a coordinate would exceed 2^59 a position follows itself: a game without end.
            after, row, _ = next_positions(player, some, spec)
            to, new = _met(after, places)
            edges.append(torch.stack([place[row], to]))
            pieces += new
    moves = torch.zeros(len(places), dtype=torch.int64)
    for place, _ in pieces:
        moves[place] = most
    source, to = torch.cat(edges, 1)
    for _ in range(most):
        moves = moves.scatter_reduce(0, source, moves[to] + 1, "amax").clamp(max=most)
    return moves[asked]


def _met(state: GameState, places: dict[bytes, int]) -> tuple[Tensor, list[Piece]]:
    """The places of N positions, int64 [N]; and those met first and unfinished, in pieces."""
    table = state.points.flatten(1).numpy()
    words = table.view(f"V{table.itemsize * table.shape[1]}")[:, 0].tolist()
    known = len(places)
    place = torch.tensor([places.setdefault(word, len(places)) for word in words])
    before = torch.cat([torch.tensor([known - 1]), place]).cummax(0).values[:-1]
    new = ((place > before) & ~state.finished()).nonzero()[:, 0]
    parts = new.split(ROWS_AT_ONCE) if len(new) else ()
    return place, [(place[some], state.select(some)) for some in parts]
