"""The worst case of a player: the longest game against a host, the shortest against an agent.

All answers that the other seat has are walked through breadth first, from many starts at once, so
that the player is asked about whole batches of positions, and about equal ones of a start once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec
from resgym.game.state import GameState
from resgym.kernels import quickest_backend
from resgym.players import Player, SpivakovskyHost, ask_player, player_name
from resgym.solver.players import OptimalAgent, OptimalHost
from resgym.solver.responses import INVARIANT

SHIFTED = (*INVARIANT, SpivakovskyHost, OptimalHost, OptimalAgent)
"""Players whose answer a shift of the position does not change; against them positions are shifted
to the axes, so that more are equal and no coordinate grows without end."""

STARTS_TOGETHER = 20
"""Starts walked at once: enough for good batches, few enough for the memory of the widest ones."""

LINES = 32
"""Positions of a level that are followed on where the walk against a host was given up."""


def worst_case_moves(
    player: Player,
    starts: GameState,
    spec: GameSpec,
    max_moves: int,
    max_positions: int,
    visit: Callable[[GameState], object] = lambda state: None,
) -> tuple[Tensor, Tensor]:
    """The longest games from N starts against a host, the shortest against an agent.

    Args:
        player: plays the same in the same position always.
        starts: N positions.
        spec: the game, with positions as they are (``reposition`` false).
        max_moves: a game that goes on beyond so many is followed no further.
        max_positions: positions looked at for a start, after which the walk from it is given up.
        visit: called with the unfinished positions after each number of moves.

    Returns:
        int64 [N]: their moves, ``max_moves`` + 1 for more; bool [N]: the walk was given up, or a
        coordinate would pass 2^59, and they have at least so many.
    """
    if getattr(player, "remembers", False):
        raise ValueError(f"player must answer the position alone, {player_name(player)} remembers")
    if spec.rule != "basic":
        raise ValueError(f"spec must have rule 'basic', got {spec.rule!r}")
    backend = quickest_backend(starts.device)
    if type(player) in SHIFTED:
        spec = replace(spec, reposition=True)
    sets = host_action_table(spec.dimension)
    moves, looked_at = torch.zeros_like(starts.count), torch.zeros_like(starts.count)
    given_up = torch.zeros_like(starts.finished())
    start = (~starts.finished()).nonzero()[:, 0]
    state = starts.select(start)
    for played in range(max_moves + 1):
        # Every unfinished position after so many moves, once for each start.
        moves[start] = played + 1
        looked_at += torch.bincount(start, minlength=len(moves))
        over = looked_at > max_positions
        # A few lines may still show that a game against a host goes on beyond all moves.
        place = torch.arange(len(start)) - torch.searchsorted(start, start)
        going = ~over[start] | (place < (LINES if player.role == "host" else 0))
        given_up[start[~going]] = True
        state, start = state.select(going), start[going]
        visit(state)
        if played == max_moves or not len(start):
            break
        if player.role == "host":
            coords = sets[ask_player(player, state, None, RowRandom(torch.zeros_like(start)))]
            row, axis = coords.nonzero().unbind(1)
            state, overflow = backend.move(state.select(row), coords[row], axis, spec)
        else:
            state, row, overflow = after_every_set(player, state, spec)
        start, finished = start[row], state.finished() & ~overflow
        if player.role == "agent":
            # The shortest game is found, or may have been lost with what cannot be followed.
            finished = torch.isin(start, start[finished])
            overflow = torch.isin(start, start[overflow & ~finished])
        given_up[start[overflow]] = True
        going = ~(finished | overflow)
        state, start = distinct(state.select(going), start[going])
    return moves, given_up & (moves <= max_moves)


def after_every_set(
    agent: Player, state: GameState, spec: GameSpec
) -> tuple[GameState, Tensor, Tensor]:
    """The positions after each set of the host in each of N, answered by the agent.

    Returns:
        N * A positions; int64 [N * A]: of which one each is; bool [N * A]: it is that very one, as
        a coordinate would pass 2^59.
    """
    sets = host_action_table(spec.dimension)
    row = torch.arange(state.num_games).repeat_interleave(len(sets))
    coords, state = sets.repeat(state.num_games, 1), state.select(row)
    axis = ask_player(agent, state, coords, RowRandom(torch.zeros_like(row)))
    spec = replace(spec, max_num_points=state.points.shape[1])  # `distinct` drops empty rows
    after, overflow = quickest_backend(state.device).move(state, coords, axis, spec)
    return after, row, overflow


def distinct(state: GameState, start: Tensor) -> tuple[GameState, Tensor]:
    """The same positions int64 [M, P, D] of the starts int64 [M], without doubles."""
    width = max(state.count.tolist(), default=1)
    state = GameState(state.points[:, :width], state.count)
    rows = torch.cat([start[:, None], state.points.flatten(1)], 1).numpy()
    words = rows.view(f"V{rows.itemsize * rows.shape[1]}")[:, 0].tolist()
    rows_of = {word: row for row, word in enumerate(words)}
    index = torch.tensor(list(rows_of.values()), dtype=torch.int64)
    return state.select(index), start[index]
