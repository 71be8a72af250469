"""The worst case of a player: the longest game against a host, the shortest against an agent.

All answers of the other seat are followed breadth first, from many starts at once. So the player
is asked about whole batches of positions, and about equal positions of a start once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from resgym.game.spec import GameSpec, host_action_table
from resgym.game.state import GameState
from resgym.kernels.dispatch import resolve_backend
from resgym.players import Player, ask_exactly, own_attribute

STARTS_TOGETHER = 20
"""Starts searched at once: enough for good batches, few enough for memory."""

LINES = 32
"""Positions of a level that are followed after the search against a host was given up."""


def in_parts(starts: GameState, number: int = STARTS_TOGETHER) -> list[GameState]:
    """Return N positions in parts of at most this many."""
    return [starts.select(rows) for rows in torch.arange(starts.num_games).split(number)]


def worst_case_moves(
    player: Player,
    starts: GameState,
    spec: GameSpec,
    max_moves: int,
    max_positions: int,
    visit: Callable[[GameState], object] = lambda state: None,
) -> tuple[Tensor, Tensor]:
    """Return the longest games from N starts against a host, or the shortest against an agent.

    Args:
        player: must be deterministic and without memory.
        starts: N positions.
        spec: the game, without ``reposition``.
        max_moves: games beyond this many moves are not followed further.
        max_positions: positions per start before its search is given up.
        visit: called with the unfinished positions after each number of moves.

    Returns:
        int64 [N]: moves, ``max_moves`` + 1 for more. bool [N]: the search was given up, or a
        coordinate would exceed 2^59, so the moves are a lower bound.
    """
    lines = LINES if player.role == "host" else 0
    return walk(player, starts, spec, max_moves, max_positions, lines, visit)[:2]


def walk(
    player: Player,
    starts: GameState,
    spec: GameSpec,
    max_moves: int,
    max_positions: int,
    lines: int,
    visit: Callable[[GameState], object] = lambda state: None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `worst_case_moves`, following this many ``lines`` after a search is given up.

    These lines may still show that a game against a host exceeds all moves. Against an agent they
    start from the smallest positions, and give an upper bound of the shortest game.

    Returns:
        also int64 [N]: moves of a game found against an agent, ``max_moves`` + 1 if none was.
    """
    if spec.rule != "basic":
        raise ValueError(f"spec must have rule 'basic', got {spec.rule!r}")
    # After a shift to the axes more positions are equal, and no coordinate grows without bound.
    spec = replace(spec, reposition=spec.reposition or bool(own_attribute(player, "invariant")))
    host, over = player.role == "host", starts.finished()
    moves, looked_at = torch.zeros_like(starts.count), torch.zeros_like(starts.count)
    most, given_up = torch.where(over, 0, max_moves + 1), torch.zeros_like(over)
    start = (~over).nonzero()[:, 0]
    state = starts.select(start)
    for played in range(max_moves + 1):
        # All unfinished positions after that many moves, once for each start.
        moves[start if host else start[~given_up[start]]] = played + 1
        looked_at += torch.bincount(start, minlength=len(moves))
        over = looked_at > max_positions
        if lines and not host and over[start].any():
            state = state.select(_by_size(state, start))
        place = torch.arange(len(start)) - torch.searchsorted(start, start)
        going = ~over[start] | (place < lines)
        given_up[start[~going]] = True
        state, start = state.select(going), start[going]
        visit(state)
        if played == max_moves or not len(start):
            break
        state, row, overflow = next_positions(player, state, spec)
        start, finished = start[row], state.finished() & ~overflow
        if not host:
            # The shortest game is found, or may have been lost with what cannot be followed.
            most[start[finished]] = played + 1
            finished = torch.isin(start, start[finished])
            overflow = torch.isin(start, start[overflow & ~finished])
        given_up[start[overflow]] = True
        going = ~(finished | overflow)
        state, start = _distinct(state.select(going), start[going])
    return moves, given_up & (moves <= max_moves), most


def next_positions(
    player: Player, state: GameState, spec: GameSpec
) -> tuple[GameState, Tensor, Tensor]:
    """Return the positions after each answer to a host, or after each set and an agent's answer.

    Returns:
        M positions; int64 [M]: the position that each comes from; bool [M]: it is unchanged,
        because a coordinate would exceed 2^59.
    """
    sets, number = host_action_table(spec.dimension), state.num_games
    if player.role == "host":
        coords = sets[ask_exactly(player, state, None)]
        row, axis = coords.nonzero().unbind(1)
        state, coords = state.select(row), coords[row]
    else:
        row = torch.arange(number).repeat_interleave(len(sets))
        state, coords = state.select(row), sets.repeat(number, 1)
        axis = ask_exactly(player, state, coords)
    spec = replace(spec, max_num_points=state.points.shape[1])  # `_distinct` drops empty rows
    after, overflow = resolve_backend("auto", state.device, spec).move(state, coords, axis, spec)
    return after, row, overflow


def _by_size(state: GameState, start: Tensor) -> Tensor:
    """Return the order int64 [M] that puts the smallest positions of each start first."""
    alive = state.alive()[..., None]
    lowest = torch.where(alive, state.points, 2**59).amin(1, keepdim=True)
    size = torch.where(alive, state.points - lowest, 0).to(torch.float64).sum((1, 2))
    return torch.from_numpy(np.lexsort((size.numpy(), start.numpy())))


def _distinct(state: GameState, start: Tensor) -> tuple[GameState, Tensor]:
    """Return the positions int64 [M, P, D] of the starts int64 [M], without duplicates."""
    width = max(state.count.tolist(), default=1)
    state = GameState(state.points[:, :width], state.count)
    rows = torch.cat([start[:, None], state.points.flatten(1)], 1).numpy()
    words = rows.view(f"V{rows.itemsize * rows.shape[1]}")[:, 0].tolist()
    rows_of = {word: row for row, word in enumerate(words)}
    index = torch.tensor(list(rows_of.values()), dtype=torch.int64)
    return state.select(index), start[index]
