"""How players are asked: every answer is checked here, and several players act as one.

Code that plays games calls `ask_player` or `ask_players`, never ``act``, because the answers are
used as indices of tables and, in compiled code, of memory. A `Seat` asks about lists of points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple

import torch
from torch import Tensor

from resgym.game import devices
from resgym.game.exact import PLAIN_HOSTS, Position, WeightedPosition
from resgym.game.rng import GAMMA, RowRandom
from resgym.game.spec import Axes, GameSpec, Role, action_axes, axes_to_coords
from resgym.game.state import GameState, holds_integers, stamps, state_from_points, tensor_kind
from resgym.game.stepping import EpisodeState
from resgym.players.registry import (
    Player,
    begin_games,
    own_attribute,
    resolve_player,
    rows_of,
    select_rows,
)
from resgym.polynomials.monomials import Exponents
from resgym.texts import shown

ASKED_AGAIN = 256
"""Positions of a batch, at most, that `ask_exactly` asks about once more."""


class InexactPlayerError(ValueError):
    """A player remembers moves or draws random numbers, so no exact value of it exists."""


def player_name(player: Any) -> str:
    """Return a short name: a name, a file's stem, ``name`` or ``__name__``, or the class."""
    if isinstance(player, str):
        return player.rstrip("/").rsplit("/", 1)[-1].removesuffix(".zip")
    return str(getattr(player, "name", None) or getattr(player, "__name__", type(player).__name__))


def ask_player(
    player: Player,
    state: GameState,
    coords: Tensor | None,
    rng: RowRandom,
    rows: Tensor | None = None,
) -> Tensor:
    """Ask a player, and check its answers.

    Type, dtype, shape and device are checked everywhere. Values are checked on the CPU only, since
    reading them on an accelerator would stall every step; there an illegal answer is replaced by
    the lowest legal one, so that it cannot reach a kernel.

    Arguments and answers are those of `Player.act`, for M games without empty sets. ``rows``
    int64 [M] are the rows of the player's batch that these games are; None means all of them.

    Raises:
        TypeError: the answer is not a dense tensor of integers.
        ValueError: its shape or device is wrong, an entry is illegal, or the player wrote to an
            argument.
    """
    own = rows_of(player, rows)
    # Copies of this call: what a player does to their shape or memory affects no game.
    copy = replace(state, points=state.points.clone(), count=state.count.clone())
    sets = None if coords is None else coords.clone()
    tensors = copy.points, copy.count, sets
    before = stamps(*tensors)
    answer = own.act(copy, sets, rng)
    who = f"{'host' if coords is None else 'agent'} {player_name(own)}"
    if stamps(*tensors) != before:
        raise ValueError(f"{who} must not write to its arguments")
    read_values = devices.is_host_memory(state.device)
    legal = check_answer(answer, state, coords, who, rows, read_values=read_values)
    if read_values:
        return answer.to(torch.int64)
    permitted = state.legal_sets() if coords is None else coords
    lowest = 0 if permitted is None else permitted.to(torch.uint8).argmax(1)
    return torch.where(legal, answer.to(torch.int64), lowest)


def ask_exactly(
    player: Player, state: GameState, coords: Tensor | None, rng: RowRandom | None = None
) -> Tensor:
    """Ask a player as `ask_player` does, and refuse it unless the position decides every answer.

    Whatever calls a value of a player exact asks here. What the player declares about itself is
    believed. Beyond that, it is asked about a part of the batch again, a small one several times.

    Args:
        player: the player.
        state: positions of N games.
        coords: bool [N, D], the hosts' sets, for an agent; None for a host.
        rng: random numbers that may decide, too; None where it must ignore them.

    Raises:
        InexactPlayerError: the player remembers or draws.
        TypeError, ValueError: an answer is invalid.
    """
    row, number = torch.arange(state.num_games, device=state.device), state.num_games
    times = max(2, min(8, ASKED_AGAIN // max(1, number)))
    draws = [RowRandom(row + time) if rng is None else rng for time in range(times)]
    some = row[:: 1 + number // ASKED_AGAIN]
    part = state.select(some), None if coords is None else coords[some]
    remembers = getattr(player, "remembers", False)
    known = remembers or (rng is None and own_attribute(player, "draws"))
    answers = [] if known else [ask_player(player, *part, each.select(some)) for each in draws]
    if known or any(not torch.equal(answers[0], again) for again in answers[1:]):
        does = "remembers moves" if remembers else "draws random numbers or remembers moves"
        raise InexactPlayerError(
            f"{player.role} must be deterministic and without memory, got "
            f"{player_name(player)!r}, which {does}"
        )
    return answers[0] if number < ASKED_AGAIN else ask_player(player, state, coords, draws[0])


def check_answer(
    answer: Any,
    state: GameState,
    coords: Tensor | None,
    who: str,
    rows: Tensor | None = None,
    *,
    read_values: bool = True,
) -> Tensor:
    """Return which entries are legal, bool [N]; with ``read_values``, raise if one is not.

    Arguments are those of `ask_player`. The error names the player, ``who``, and the illegal
    entry's number in ``rows``.

    Raises:
        TypeError, ValueError: the answer is not a dense tensor of N integers on that device.
    """
    if not isinstance(answer, Tensor):
        raise TypeError(f"{who} must return a tensor, got {type(answer).__name__}")
    if answer.device != state.device:
        raise ValueError(f"{who} must answer on {state.device}, got {answer.device}")
    num_actions = state.num_host_actions if coords is None else state.dimension
    if not holds_integers(answer):
        raise TypeError(
            f"{who} must return integers, got {tensor_kind(answer)}; expected int64 [N] of "
            f"0..{num_actions - 1} (of a host's sets resgym.game.spec.coords_to_action makes them)"
        )
    if answer.shape != (state.num_games,):
        raise ValueError(f"{who} must return shape ({state.num_games},), got {tuple(answer.shape)}")
    actions = answer.to(torch.int64)
    inside = actions.clamp(0, num_actions - 1)
    legal = inside == actions
    permitted = state.legal_sets() if coords is None else coords
    if permitted is not None:
        legal &= permitted.gather(1, inside[:, None])[:, 0]
    if read_values and not legal.all():
        place = int((~legal).nonzero()[0])
        row = place if rows is None else int(rows[place])
        allowed: Any = f"0..{num_actions - 1}"
        if permitted is not None:
            allowed = permitted[place].nonzero()[:, 0].tolist()
        given = int(answer.cpu().numpy()[place])  # torch refuses to read large unsigned numbers
        raise ValueError(f"{who} answered {given} in row {row}, allowed are {allowed}")
    return legal


def ask_players(
    players: Sequence[Player],
    assignment: Tensor,
    state: GameState,
    coords: Tensor | None,
    rng: RowRandom,
    rows: Tensor | None = None,
) -> Tensor:
    """Ask several players, each in its own games, and check their answers.

    On the CPU each player answers only its own rows. On an accelerator each answers all rows and
    the right answers are selected, because finding the rows would wait for the device; the cost is
    then that of all players together. ``assignment`` int64 [M] gives each game's player, an index
    of ``players``. The other arguments are those of `ask_player`.

    Raises:
        TypeError, ValueError: an answer is invalid, see `ask_player`.
    """
    if not devices.is_host_memory(state.device):
        answer = ask_player(players[0], state, coords, rng, rows)
        for number, player in enumerate(players[1:], 1):
            own = ask_player(player, state, coords, rng, rows)
            answer = torch.where(assignment == number, own, answer)
        return answer
    answer = torch.zeros_like(assignment)
    for number, player in enumerate(players):
        index = (assignment == number).nonzero()[:, 0]
        if len(index):
            own_rows = index if rows is None else rows[index]
            answer[index] = ask_player(player, *select_rows(state, coords, rng, index), own_rows)
    return answer


class Mixture(NamedTuple):
    """Opponents, and the rule that assigns games to them.

    Games are numbered by row, then by episode: row i of N plays game k = i + N e in its episode e,
    both counted from 0. Without shares, game k meets player k mod L, where L is the number of
    players; with L = N each row has its own. With shares, it meets the player whose part of 0..1
    contains k/phi mod 1, where phi is the golden ratio. In any run of games every player then gets
    its share up to a few games (Weyl's sequence, which has the least discrepancy of its kind).
    Nothing is drawn at random, and nothing has to be saved.

    Attributes:
        players: L of one role.
        shares: part of the games of each player, above 0, sum 1; None: in turn.
        assignment: int64 [N], who plays each row, whatever the episode; None: as above.
    """

    players: tuple[Player, ...]
    shares: tuple[float, ...] | None = None
    assignment: Tensor | None = None

    @property
    def compiled(self) -> str | None:
        """The name of the only player if a backend may play it itself, or None."""
        return own_attribute(self.players[0], "compiled") if len(self.players) == 1 else None

    def seats(self, episode: Tensor) -> Tensor:
        """Who plays each row in its ``episode`` int64 [N], as places int64 [N] in ``players``."""
        if self.assignment is not None:
            return self.assignment
        rows = len(episode)
        game = torch.arange(rows, device=episode.device) + rows * episode.clamp(min=0)
        if self.shares is None:
            return game % len(self.players)
        # GAMMA is 2^64 divided by the golden ratio; the product wraps around at 2^64, which is the
        # remainder that is wanted.
        place = ((game * GAMMA) >> 11 & (2**53 - 1)).to(torch.float64) * 2.0**-53
        ends = torch.tensor(self.shares, dtype=torch.float64, device=episode.device).cumsum(0)
        return torch.searchsorted(ends[:-1].contiguous(), place, right=True)

    def ask(
        self, games: EpisodeState, coords: Tensor | None, rng: RowRandom, rows: Tensor | None
    ) -> Tensor:
        """Their answers; see `resgym.game.stepping.Ask`."""
        position = games.position
        for player in self.players:
            if getattr(player, "remembers", False):
                begin_games(player, games.half_moves < 2)
        if rows is not None:
            position, coords, rng = select_rows(position, coords, rng, rows)
        if len(self.players) == 1:
            return ask_player(self.players[0], position, coords, rng, rows)
        seats = self.seats(games.episode)
        seats = seats if rows is None else seats[rows]
        return ask_players(self.players, seats, position, coords, rng, rows)


def make_mixture(
    given: Any, role: Role, spec: GameSpec | None = None, field: str = "opponent"
) -> Mixture:
    """The mixture of a player, of a sequence of them, or of their weights above 0.

    Players are what `resolve_player` takes; errors name ``field``.

    Raises:
        TypeError, ValueError: there is no player, an entry is none, or a weight is not above 0.
    """
    if isinstance(given, str) or not isinstance(given, (Sequence, Mapping)):
        return Mixture((resolve_player(given, role, spec, field),))
    if not given:
        raise ValueError(f"{field} must be at least one player, got none")
    players, shares = tuple(resolve_player(each, role, spec, field) for each in given), None
    if isinstance(given, Mapping):
        for name, weight in given.items():
            if not isinstance(weight, Real) or not 0 < float(weight) < math.inf:
                raise ValueError(
                    f"{field}: the weight of {shown(name)} must be a number above 0, got "
                    f"{shown(weight)}"
                )
        total = math.fsum(given.values())
        shares = tuple(weight / total for weight in given.values())
    return Mixture(players, shares)


_ROWS = 20


class Seat:
    """A player (anything that `resolve_player` takes) that is asked about lists of points.

    The points are in the order in which they were typed. Zeillinger's host takes the first of
    several equally good pairs, so as all `PLAIN_HOSTS` it answers the list itself. All other
    players get the sorted state of the environments.

    The start gives the number of axes, ``game`` the rule. The player is asked with ``ask``, by
    default so that the position decides its answers.
    """

    def __init__(
        self,
        player: Any,
        role: Role,
        position: Exponents,
        game: GameSpec | None = None,
        ask: Callable[..., Tensor] = ask_exactly,
    ) -> None:
        game = game or GameSpec()
        # To subtract what is least changes no answer.
        rows, dimension = max(_ROWS, len(position)), position.dimension
        self.spec = replace(game, dimension=dimension, max_num_points=rows, reposition=False)
        self.player = resolve_player(player, role, self.spec, role)
        self._ask = ask
        self._plain = PLAIN_HOSTS.get(own_attribute(self.player, "compiled") or "")
        self.name = player if isinstance(player, str) else player_name(self.player)

    def host_sets(self, positions: Sequence[Position], rng: RowRandom | None = None) -> list[Axes]:
        """The host's set in every position."""
        if self._plain:
            return [*map(self._plain, positions)]
        sets = action_axes(self.spec.dimension, self.spec.least_axes)
        return [sets[action] for action in self._answers(positions, None, rng)]

    def agent_axes(
        self, positions: Sequence[Position], sets: Sequence[Axes], rng: RowRandom | None = None
    ) -> list[int]:
        """The agent's axis for a position and a host's set each."""
        return self._answers(positions, axes_to_coords(sets, self.spec.dimension), rng)

    def _answers(
        self, positions: Sequence[Position], coords: Tensor | None, rng: RowRandom | None
    ) -> list[int]:
        games, weights = [*map(list, positions)], []
        for game, position in zip(games, positions, strict=True):
            if isinstance(position, WeightedPosition):
                game.sort(key=position.distinguished.__eq__)  # which comes last
                weights.append(position.weights)
        state = state_from_points(games, self.spec, weights=weights or None)
        coords = None if coords is None else state.answers(coords)
        return self._ask(self.player, state, coords, rng).tolist()  # type: ignore[no-any-return]
