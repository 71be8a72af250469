"""Plays whole games between two players."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from resgym.game import devices
from resgym.game.actions import action_axes, host_action_table
from resgym.game.rng import RowRandom, Stream
from resgym.game.spec import GameSpec, check_integer
from resgym.game.state import GameState, where_state
from resgym.kernels import resolve_backend
from resgym.players import Player, ask_player, resolve_player, rows_of
from resgym.render.positions import AXIS_NAMES, format_axes, format_position

__all__ = ["GameRecord", "Lengths", "play_lengths", "record_game"]


@dataclass(frozen=True)
class Lengths:
    """How N games went.

    Attributes:
        moves: int64 [N], moves played.
        finished: bool [N], one point was left in the end.
        overflow: bool [N], stopped because a coordinate would have passed 2^59.
    """

    moves: Tensor
    finished: Tensor
    overflow: Tensor


def play_lengths(
    host: Player,
    agent: Player,
    starts: GameState,
    spec: GameSpec,
    rng: RowRandom,
    max_moves: int,
    backend: str = "auto",
) -> Lengths:
    """Plays N games to their end, or to the limit.

    Args:
        host: names the sets.
        agent: answers.
        starts: N positions.
        spec: the game.
        rng: random numbers of the N games; half-move h of a game draws from step h.
        max_moves: games are cut after so many moves.
        backend: implementation of the move.

    Returns:
        Results on the device of ``starts``. A game's result does not depend on the others.
    """
    device = starts.device
    looking = devices.is_host_memory(device)
    kernels = resolve_backend(backend, device, spec)
    sets = host_action_table(spec.dimension, device)
    moves = torch.zeros_like(starts.count)
    overflowed = torch.zeros_like(moves, dtype=torch.bool)
    finished = starts.finished()
    state, row = starts, torch.arange(starts.num_games, device=device)
    for played in range(max_moves):
        # On the CPU ended games are dropped; elsewhere that would mean looking at the data, so
        # they stay, unchanged, and one look every few moves tells whether any is left.
        going = ~(finished | overflowed)[row]
        if looking:
            keep = going.nonzero()[:, 0]
            if len(keep) < len(row):
                state, row, rng = state.select(keep), row[keep], rng.select(keep)
                host, agent = rows_of(host, keep), rows_of(agent, keep)
                going = torch.ones_like(row, dtype=torch.bool)
            if not len(row):
                break
        elif played % 16 == 0 and not bool(going.any()):
            break
        coords = sets[ask_player(host, state, None, rng.at(2 * played, Stream.HOST))]
        axis = ask_player(agent, state, coords, rng.at(2 * played + 1, Stream.AGENT))
        after, overflow = kernels.move(state, coords, axis, spec)
        state = after if looking else where_state(going, after, state)
        moves = moves.index_add(0, row, going.to(moves.dtype))
        finished = finished.index_copy(0, row, finished[row] | (going & state.finished()))
        overflowed = overflowed.index_copy(0, row, overflowed[row] | (going & overflow))
    return Lengths(moves, finished, overflowed)


@dataclass(frozen=True)
class GameRecord:
    """One game, move by move.

    Attributes:
        positions: the positions met, the start first.
        axes: the host's set of each move.
        axis: the agent's axis of each move.
        finished: one point was left in the end.
    """

    positions: list[list[tuple[int, ...]]]
    axes: list[tuple[int, ...]]
    axis: list[int]
    finished: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "finished": self.finished,
            "moves": len(self.axes),
            "positions": [[list(point) for point in points] for points in self.positions],
            "host": [list(axes) for axes in self.axes],
            "agent": list(self.axis),
        }

    def to_gif(
        self,
        path: str | os.PathLike[str],
        *,
        seconds: float = 1.5,
        names: Sequence[str] = AXIS_NAMES,
    ) -> Path:
        """Writes the game as an animated GIF (2 or 3 axes); see `game_to_gif`."""
        from resgym.render.games import game_to_gif

        return game_to_gif(self, path, seconds=seconds, names=names)

    def to_html(self, *, title: str = "", names: Sequence[str] = AXIS_NAMES) -> str:
        """A page with a picture of every position (2 or 3 axes); see `game_to_html`."""
        from resgym.render.games import game_to_html

        return game_to_html(self, title=title, names=names)

    def __str__(self) -> str:
        parts = ["start", format_position(self.positions[0], None)]
        for number, (axes, axis) in enumerate(zip(self.axes, self.axis, strict=True), 1):
            parts.append(
                f"\nmove {number}: host {format_axes(axes)}, agent {AXIS_NAMES[axis]}"
                f"  ({AXIS_NAMES[axis]} becomes {' + '.join(AXIS_NAMES[a] for a in axes)})"
            )
            parts.append(format_position(self.positions[number], None))
        if not self.finished:
            parts.append(f"\nstopped after {len(self.axes)} moves")
        return "\n".join(parts)


def record_game(
    host: Any,
    agent: Any,
    start: GameState,
    spec: GameSpec,
    *,
    seed: int = 0,
    max_moves: int = 200,
) -> GameRecord:
    """Plays one game and keeps every position.

    Args:
        host: name, `Player`, callable or path.
        agent: likewise.
        start: a state of one game.
        spec: the game.
        seed: for players that draw.
        max_moves: the game is cut after so many moves.
    """
    check_integer("max_moves", max_moves, 1)
    hosts, agents = resolve_player(host, "host", spec), resolve_player(agent, "agent", spec)
    kernels = resolve_backend("auto", devices.resolve_device(start.device), spec)
    sets = host_action_table(spec.dimension, start.device)
    one = torch.ones_like(start.count)
    rng = RowRandom.for_episode(one * seed, one * 0)
    state, positions = start, [start.point_lists()[0]]
    axes: list[tuple[int, ...]] = []
    chosen: list[int] = []
    for played in range(max_moves):
        if bool(state.finished()):
            break
        action = ask_player(hosts, state, None, rng.at(2 * played, Stream.HOST))
        axis = ask_player(agents, state, sets[action], rng.at(2 * played + 1, Stream.AGENT))
        state, overflow = kernels.move(state, sets[action], axis, spec)
        if bool(overflow):
            break
        axes.append(action_axes(spec.dimension)[int(action)])
        chosen.append(int(axis))
        positions.append(state.point_lists()[0])
    return GameRecord(positions, axes, chosen, bool(state.finished()))
