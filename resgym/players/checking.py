"""The contract of players as public code."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from resgym.game.devices import resolve_device
from resgym.game.rng import RowRandom, derive_seed
from resgym.game.rules import move, random_starts
from resgym.game.spec import GameSpec, check_integer, host_action_table
from resgym.game.state import GameState
from resgym.players.asking import check_answer
from resgym.players.registry import Player, check_role, rows_of
from resgym.players.scripted import RandomAgent, RandomHost

_MOVES = 12
_OTHER, _OWN, _AXES = 0, 1, 2


def check_player(
    player: Player,
    dimension: int = 3,
    num_games: int = 64,
    seed: int = 0,
    *,
    spec: GameSpec | None = None,
    device: torch.device | str = "cpu",
) -> None:
    """Play games with a player, and raise if it violates the contract of `Player`.

    Its answers must be legal in finished and unfinished games, integers [N] on the right device,
    and the same twice. Each row's answer must be the same alone, among others and in another
    order. The player must not write to its arguments or use torch's global generator.

    At least 4 games are played, of ``spec`` or of a default game of ``dimension`` axes.

    Raises:
        AssertionError: the player violates the contract; the message explains how.
        TypeError, ValueError: an argument of the check is wrong.
    """
    spec = spec or GameSpec(dimension=dimension)
    num_games = check_integer("num_games", num_games, 4)
    device = resolve_device(device)
    key = torch.arange(num_games) + derive_seed(check_integer("seed", seed, 0, 2**62)) // 2
    try:
        role = check_role(getattr(player, "role", None), "the player's attribute role")
    except ValueError as error:
        raise AssertionError(str(error)) from None
    rng = RowRandom(key.to(device))
    table = host_action_table(spec.dimension, device, spec.least_axes)
    state = random_starts(spec, rng.split(_OTHER))
    for step in range(_MOVES):
        now = rng.split(1 + step)
        sets = table[RandomHost().act(state, None, now.split(_OTHER))]
        coords = state.answers(sets) if role == "agent" else None
        answer = _checked(player, state, coords, now.split(_OWN), f"move {step}")
        sets = sets if role == "agent" else table[answer]
        axis = RandomAgent().act(state, state.answers(sets), now.split(_AXES))
        state, _ = move(state, sets, answer if role == "agent" else axis, spec)
        # The first game is at its end after one move, in the origin, so that every player meets
        # finished games.
        points, count = state.points.clone(), state.count.clone()
        points[0], points[0, 0], count[0] = -1, 0, 1
        state = replace(state, points=points, count=count)


def _checked(
    player: Player, state: GameState, coords: Tensor | None, rng: RowRandom, when: str
) -> Tensor:
    """Return the player's answer if every way of asking gives the same."""
    rows = torch.arange(state.num_games, device=state.device)
    answer = _asked(player, state, coords, rng, when)
    ways = {
        "is asked again": rows,
        "has its rows reordered": rng.split(7).key.argsort(),
        "gets half the rows": rows[: len(rows) // 2],
        **{f"gets row {row} alone": rows[row : row + 1] for row in (0, 1, len(rows) - 1)},
    }
    for how, index in ways.items():
        own = player if index is rows else rows_of(player, index)
        sets = None if coords is None else coords[index]
        again = _asked(own, state.select(index), sets, rng.select(index), f"{when}, when it {how}")
        for at, before, after in zip(index, answer[index], again, strict=True):
            if before != after:
                raise AssertionError(
                    f"{player!r} answers differently when it {how}: row {int(at)} gave "
                    f"{int(before)}, then {int(after)} ({when})"
                )
    return answer


def _asked(
    player: Player, state: GameState, coords: Tensor | None, rng: RowRandom, when: str
) -> Tensor:
    """The answer, after checks of its form, its values and of side effects."""
    given = [state.points, state.count, rng.key, *([] if coords is None else [coords])]
    before, random = [tensor.clone() for tensor in given], torch.random.get_rng_state()
    try:
        answer = player.act(state, coords, rng)
        if not torch.equal(random, torch.random.get_rng_state()):
            raise ValueError("it uses torch's global generator")
        if not all(map(torch.equal, given, before)):
            raise ValueError("it writes to its arguments")
        check_answer(answer, state, coords, "it")
    except Exception as error:
        raise AssertionError(f"{player!r}: {type(error).__name__}: {error} ({when})") from error
    # A copy, in case the player returns a buffer that it writes to again.
    return answer.to(torch.int64, copy=True)
