"""How players are asked: every answer is checked here, and several players act as one.

Code that plays games calls `ask_player` or `ask_players`, never ``act``, because the answers are
used as indices of tables and, in compiled code, of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from resgym.game import devices
from resgym.game.rng import RowRandom
from resgym.game.state import GameState, holds_integers, stamps, tensor_kind
from resgym.players.base import Player, own_attribute, rows_of

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
    shown, named = state.detached(), None if coords is None else coords.clone()
    handed = (shown.points, shown.count, *(() if named is None else (named,)))
    before = stamps(*handed)
    answer = own.act(shown, named, rng)
    who = f"{'host' if coords is None else 'agent'} {player_name(own)}"
    if stamps(*handed) != before:
        raise ValueError(f"{who} must not write to its arguments")
    looking = devices.is_host_memory(state.device)
    legal = check_answer(answer, state, coords, who, rows, looking=looking)
    if looking:
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
    looking: bool = True,
) -> Tensor:
    """Return which entries are legal, bool [N]; with ``looking``, raise if one is not.

    Arguments are those of `ask_player`; the error names ``who`` and the number in ``rows``.

    Raises:
        TypeError, ValueError: the answer is not a dense tensor of N integers on that device.
    """
    if not isinstance(answer, Tensor):
        raise TypeError(f"{who} must return a tensor, got {type(answer).__name__}")
    if answer.device != state.device:
        raise ValueError(f"{who} must answer on {state.device}, got {answer.device}")
    if not holds_integers(answer):
        raise TypeError(f"{who} must return integers, got {tensor_kind(answer)}")
    if answer.shape != (state.num_games,):
        raise ValueError(f"{who} must return shape ({state.num_games},), got {tuple(answer.shape)}")
    number = state.num_host_actions if coords is None else state.points.shape[2]
    exact = answer.to(torch.int64)
    inside = exact.clamp(0, number - 1)
    legal = inside == exact
    permitted = state.legal_sets() if coords is None else coords
    if permitted is not None:
        legal &= permitted.gather(1, inside[:, None])[:, 0]
    if looking and not legal.all():
        place = int((~legal).nonzero()[0])
        row = place if rows is None else int(rows[place])
        allowed: Any = f"0..{number - 1}"
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
        TypeError, ValueError: an answer is invalid (see `ask_player`), or on the CPU a game has no
            player.
    """
    if not devices.is_host_memory(state.device):
        answer = ask_player(players[0], state, coords, rng, rows)
        for number, player in enumerate(players[1:], 1):
            own = ask_player(player, state, coords, rng, rows)
            answer = torch.where(assignment == number, own, answer)
        return answer
    answer = torch.full((state.num_games,), -1, device=state.device)
    for number, player in enumerate(players):
        index = (assignment == number).nonzero()[:, 0]
        if len(index):
            answer[index] = ask_player(
                player,
                state.select(index),
                None if coords is None else coords[index],
                rng.select(index),
                index if rows is None else rows[index],
            )
    missing = answer < 0
    if missing.any():
        raise ValueError(
            f"assignment must be in 0..{len(players) - 1} (players), "
            f"got {assignment[missing][0].item()}"
        )
    return answer
