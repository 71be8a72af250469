"""Play whole games between two players, and look ahead by playing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from resgym.game import devices
from resgym.game.rng import RowRandom, Stream, derive_seed
from resgym.game.rules import start_positions
from resgym.game.spec import Axes, GameSpec, Point, action_axes, check_integer, host_action_table
from resgym.game.state import GameState, where_state
from resgym.kernels.dispatch import resolve_backend
from resgym.lazy import Lazy
from resgym.players import Player, ask_player, player_name, resolve_player, rows_of
from resgym.players.registry import begin_games
from resgym.polynomials.starts import resolve_starts
from resgym.texts import Data, format_move, format_position

_SEED_WORD = 0x67616D65  # keeps the starts of samples apart from those of other uses of the seed
_ROLLOUT = 0x726F6C6C  # rollouts draw other random numbers than the game that is played


@dataclass(frozen=True)
class GameRecord:
    """One game, move by move.

    Attributes:
        positions: the positions, the start first.
        axes: the host's set of each move.
        axis: the agent's axis of each move.
        finished: one point was left in the end.
    """

    positions: list[list[Point]]
    axes: list[Axes]
    axis: list[int]
    finished: bool

    def to_dict(self) -> Data:
        """Return plain data, for JSON."""
        return {
            "finished": self.finished,
            "moves": len(self.axes),
            "positions": [[*map(list, points)] for points in self.positions],
            "host": [*map(list, self.axes)],
            "agent": list(self.axis),
        }

    def __str__(self) -> str:
        parts = ["start", format_position(self.positions[0])]
        for number, (axes, axis) in enumerate(zip(self.axes, self.axis, strict=True), 1):
            move = f"\nmove {number}: {format_move(axes, axis)}"
            parts += [move, format_position(self.positions[number])]
        if not self.finished:
            parts.append(f"\nstopped after {len(self.axes)} moves")
        return "\n".join(parts)

    pictures = Lazy("resgym.pictures.games:pictures_of_game")
    to_gif = Lazy("resgym.pictures.games:game_to_gif")


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


def play_lengths(
    host: Player,
    agent: Player,
    starts: GameState,
    spec: GameSpec,
    rng: RowRandom,
    max_moves: int,
    backend: str = "auto",
    note: Callable[..., None] = lambda *move: None,
) -> Lengths:
    """Play N games to their end, or to the limit.

    Games are cut after ``max_moves``; half-move h draws from step h of the random numbers.
    ``note`` is called after every move with the numbers of the games int64 [M], their actions, axes
    and positions, and bool [M]: the move was played, not refused as an overflow.

    Returns:
        Results on the device of ``starts``. A game's result does not depend on the others.
    """
    device = starts.device
    read_values = devices.is_host_memory(device)
    kernels = resolve_backend(backend, device, spec)
    sets = host_action_table(spec.dimension, device, spec.least_axes)
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
        if read_values:
            keep = going.nonzero()[:, 0]
            if len(keep) < len(row):
                state, row, rng = state.select(keep), row[keep], rng.select(keep)
                host, agent = rows_of(host, keep), rows_of(agent, keep)
                going = torch.ones_like(row, dtype=torch.bool)
            if not len(row):
                break
        elif played % 16 == 0 and not going.any():
            break
        action = ask_player(host, state, None, rng.at(2 * played, Stream.HOST))
        answers = state.answers(sets[action])
        axis = ask_player(agent, state, answers, rng.at(2 * played + 1, Stream.AGENT))
        after, overflow = kernels.move(state, sets[action], axis, spec)
        note(row, action, axis, after, going & ~overflow)
        state = after if read_values else where_state(going, after, state)
        moves = moves.index_add(0, row, going.to(moves.dtype))
        finished = finished.index_copy(0, row, finished[row] | (going & state.finished()))
        overflowed = overflowed.index_copy(0, row, overflowed[row] | (going & overflow))
    return Lengths(moves, finished, overflowed)


def record_all(
    host: Any, agent: Any, starts: GameState, spec: GameSpec, rng: RowRandom, max_moves: int
) -> list[GameRecord]:
    """Play N games in parallel, so that players are asked in batches, and keep every position.

    Players are names, `Player`s, callables or paths of saved models. Games are cut after
    ``max_moves``, and before a coordinate exceeds 2^59; random numbers are as in `play_lengths`.
    """
    check_integer("max_moves", max_moves, 1)
    hosts = resolve_player(host, "host", spec, "host")
    agents = resolve_player(agent, "agent", spec, "agent")
    sets = action_axes(spec.dimension, spec.least_axes)
    positions = [[points] for points in starts.point_lists()]
    named: list[list[Axes]] = [[] for _ in positions]
    answered: list[list[int]] = [[] for _ in positions]

    def note(game: Tensor, action: Tensor, axis: Tensor, state: GameState, played: Tensor) -> None:
        for row in played.nonzero()[:, 0].tolist():
            number = int(game[row])
            positions[number] += state.select(slice(row, row + 1)).point_lists()
            named[number].append(sets[int(action[row])])
            answered[number].append(int(axis[row]))

    finished = play_lengths(hosts, agents, starts, spec, rng, max_moves, note=note).finished
    return [*map(GameRecord, positions, named, answered, finished.tolist())]


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
    """Record games from random starts, which the seed fixes too; see `record_all`.

    ``starts`` is the set that starts are drawn from, see
    `resgym.polynomials.starts.resolve_starts`. ``game`` holds sizes and options of a `GameSpec`:
    dimension, max_num_points, max_value, ...
    """
    games = check_integer("games", games, 1)
    spec = GameSpec(**game)
    row = torch.arange(games)
    rng = RowRandom.for_episode(row + derive_seed(seed, _SEED_WORD))
    begin = start_positions(spec, rng.at(0, Stream.START), resolve_starts(starts, spec))
    own = torch.tensor([derive_seed(seed, _SEED_WORD, number) for number in range(games)])
    return record_all(host, agent, begin, spec, RowRandom.for_episode(own), max_moves)


class Ahead:
    """One step of policy improvement by simulated games (Tesauro and Galperin 1996).

    For every legal answer the game is simulated with the opponent and a policy for the player's own
    later moves. An agent takes the answer with the longest game, a host the shortest; ties go to
    the policy's answer, or else to the first. Simulations draw random numbers of their own.

    Args:
        policy: plays the later moves; a player of the same seat.
        opponent: the player of the other seat.
        spec: the game.
        moves: number of moves after which games are cut.
    """

    def __init__(self, policy: Player, opponent: Player, spec: GameSpec, moves: int) -> None:
        self.role = policy.role
        self.name = f"{player_name(policy)} with lookahead"
        self.policy, self.opponent, self.spec, self.moves = policy, opponent, spec, moves

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`; costs as many moves as the games have."""
        usual = ask_player(self.policy, state, coords, rng)
        sets = host_action_table(self.spec.dimension, state.device)
        legal = usual.new_ones(len(usual), len(sets)) if coords is None else coords
        row, option = legal.nonzero(as_tuple=True)
        state, draws = state.select(row), rng.split(_ROLLOUT).select(row)
        if coords is None:
            pair = (self.policy, self.opponent)
            coords = sets[option]
            axis = ask_player(self.opponent, state, coords, draws.split(1))
        else:
            pair = (self.opponent, self.policy)
            coords, axis = coords[row], option
        kernels = resolve_backend("auto", state.device, self.spec)
        after, overflow = kernels.move(state, coords, axis, self.spec)
        found = play_lengths(*pair, after, self.spec, draws.split(2), self.moves)
        # An overflow counts as never ending.
        length = torch.where(overflow | found.overflow, self.moves, found.moves)
        score = usual.new_full(legal.shape, -self.moves - 1)
        score[row, option] = length if self.role == "agent" else -length
        # Twice, to make room for a preference among equals.
        return (2 * score).scatter_add(1, usual[:, None], usual.new_ones(len(usual), 1)).argmax(1)
