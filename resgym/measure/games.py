"""Play whole games between two players."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from resgym.game import devices
from resgym.game.actions import action_axes, host_action_table
from resgym.game.rng import RowRandom, Stream, derive_seed
from resgym.game.rules import start_positions
from resgym.game.spec import GameSpec, check_integer
from resgym.game.state import GameState, where_state
from resgym.kernels import Backend, resolve_backend
from resgym.players import Player, ask_player, resolve_player, rows_of
from resgym.players.base import begin_games
from resgym.polynomials.starts import resolve_starts
from resgym.render.games import GameRecord

_SEED_WORD = 0x67616D65  # keeps the starts of samples apart from those of other uses of the seed


class Lengths(NamedTuple):
    """Results of N games.

    Attributes:
        moves: int64 [N], moves played.
        finished: bool [N], one point was left in the end.
        overflow: bool [N], stopped because a coordinate would have passed 2^59.
    """

    moves: Tensor
    finished: Tensor
    overflow: Tensor


def play_move(
    host: Player,
    agent: Player,
    state: GameState,
    spec: GameSpec,
    rng: RowRandom,
    played: int,
    kernels: Backend,
) -> tuple[Tensor, Tensor, GameState, Tensor]:
    """Play one move of N games, after ``played`` others; half-move h draws from step h.

    Returns:
        The host's actions int64 [N], the agent's axes int64 [N], the positions after them, and
        bool [N]: a coordinate would have exceeded 2^59, so the position is unchanged.
    """
    action = ask_player(host, state, None, rng.at(2 * played, Stream.HOST))
    coords = host_action_table(spec.dimension, state.device, spec.least_axes)[action]
    axis = ask_player(agent, state, state.answers(coords), rng.at(2 * played + 1, Stream.AGENT))
    return action, axis, *kernels.move(state, coords, axis, spec)


def play_lengths(
    host: Player,
    agent: Player,
    starts: GameState,
    spec: GameSpec,
    rng: RowRandom,
    max_moves: int,
    backend: str = "auto",
) -> Lengths:
    """Play N games to their end, or to the limit.

    Players, spec and random numbers are those of `play_move`; games are cut after ``max_moves``.

    Returns:
        Results on the device of ``starts``. A game's result does not depend on the others.
    """
    device = starts.device
    looking = devices.is_host_memory(device)
    kernels = resolve_backend(backend, device, spec)
    moves = torch.zeros_like(starts.count)
    overflowed = torch.zeros_like(moves, dtype=torch.bool)
    finished = starts.finished()
    state, row = starts, torch.arange(starts.num_games, device=device)
    for player in (host, agent):
        begin_games(player, torch.ones_like(finished))
    for played in range(max_moves):
        # On the CPU ended games are dropped. Elsewhere that would mean reading the data: they stay,
        # unchanged, and reading every few moves tells whether any game is left.
        going = ~(finished | overflowed)[row]
        if looking:
            keep = going.nonzero()[:, 0]
            if len(keep) < len(row):
                state, row, rng = state.select(keep), row[keep], rng.select(keep)
                host, agent = rows_of(host, keep), rows_of(agent, keep)
                going = torch.ones_like(row, dtype=torch.bool)
            if not len(row):
                break
        elif played % 16 == 0 and not going.any():
            break
        *_, after, overflow = play_move(host, agent, state, spec, rng, played, kernels)
        state = after if looking else where_state(going, after, state)
        moves = moves.index_add(0, row, going.to(moves.dtype))
        finished = finished.index_copy(0, row, finished[row] | (going & state.finished()))
        overflowed = overflowed.index_copy(0, row, overflowed[row] | (going & overflow))
    return Lengths(moves, finished, overflowed)


def record_all(
    host: Any, agent: Any, starts: GameState, spec: GameSpec, rng: RowRandom, max_moves: int = 200
) -> list[GameRecord]:
    """Play N games in parallel, so that players are asked in batches, and keep every position.

    Players are names, `Player`s, callables or paths of saved models. Spec and random numbers are
    those of `play_move`. Games are cut after ``max_moves``, and before a coordinate exceeds 2^59.
    """
    check_integer("max_moves", max_moves, 1)
    hosts = resolve_player(host, "host", spec, "host")
    agents = resolve_player(agent, "agent", spec, "agent")
    kernels = resolve_backend("auto", starts.device, spec)
    sets = action_axes(spec.dimension, spec.least_axes)
    ended = starts.finished().tolist()
    records = [GameRecord([p], [], [], e) for p, e in zip(starts.point_lists(), ended, strict=True)]
    state, games, going = starts, torch.arange(len(records)), ~starts.finished()
    for player in (hosts, agents):
        begin_games(player, torch.ones_like(going))
    for played in range(max_moves):
        index = going.nonzero()[:, 0]
        if not len(index):
            break
        state, games, rng = state.select(index), games[index.cpu()], rng.select(index)
        hosts, agents = rows_of(hosts, index), rows_of(agents, index)
        moved = play_move(hosts, agents, state, spec, rng, played, kernels)
        actions, axes, state, overflow = moved
        going = ~(overflow | state.finished())
        for place, game in enumerate(games.tolist()):
            if not overflow[place]:
                now = state.select(slice(place, place + 1))
                records[game] = records[game].after(
                    sets[int(actions[place])], int(axes[place]), now
                )
    return records


def record_game(
    host: Any, agent: Any, start: GameState, spec: GameSpec, *, seed: int = 0, max_moves: int = 200
) -> GameRecord:
    """Record one game from a state of one game; ``seed`` is for players that draw."""
    rng = RowRandom.for_episode(torch.full_like(start.count, seed), torch.zeros_like(start.count))
    return record_all(host, agent, start, spec, rng, max_moves)[0]


def sample_games(
    host: Any,
    agent: Any,
    *,
    games: int = 3,
    seed: int = 0,
    max_moves: int = 200,
    starts: Any = None,
    **game: Any,
) -> list[GameRecord]:
    """Record games from random starts, which the seed fixes too; see `record_game`.

    ``starts`` is the set that starts are drawn from, see
    `resgym.polynomials.starts.resolve_starts`. ``game`` holds sizes and options of a `GameSpec`:
    dimension, max_num_points, max_value, ...
    """
    games = check_integer("games", games, 1)
    spec = GameSpec(**game)
    row = torch.arange(games)
    seeds = row + derive_seed(seed, _SEED_WORD)
    rng = RowRandom.for_episode(seeds, row * 0).at(0, Stream.START)
    begin = start_positions(spec, rng, resolve_starts(starts, spec))
    own = torch.tensor([derive_seed(seed, _SEED_WORD, number) for number in range(games)])
    return record_all(host, agent, begin, spec, RowRandom.for_episode(own, row * 0), max_moves)
