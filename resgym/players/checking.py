"""The contract of players as public code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom, derive_seed
from resgym.game.rules import move, random_starts
from resgym.game.spec import GameSpec, check_integer
from resgym.game.state import GameState
from resgym.players.asking import check_answer
from resgym.players.base import Player, check_role, rows_of
from resgym.players.scripted import uniform

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

    A player of a fixed batch is asked through ``select`` (see `rows_of`). At least 4 games are
    played, of ``spec`` or of a default game with ``dimension`` axes.

    Raises:
        AssertionError: the player violates the contract; the message says how.
        TypeError, ValueError: an argument of the check is wrong.
    """
    spec = GameSpec(dimension=dimension) if spec is None else spec
    num_games = check_integer("num_games", num_games, 4)
    seed = check_integer("seed", seed, 0, 2**62)
    role = _role_of(player)

    key = torch.arange(num_games, dtype=torch.int64) + derive_seed(seed) // 2
    rng = RowRandom(key.to(device))
    table = host_action_table(spec.dimension, device, spec.least_axes)
    state = random_starts(spec, rng.split(_OTHER))
    for step in range(_MOVES):
        now = rng.split(1 + step)
        legal = state.legal_sets()
        every = torch.ones(num_games, len(table), dtype=torch.bool, device=device)
        drawn = table[uniform(every if legal is None else legal, now.split(_OTHER))]
        coords = state.answers(drawn) if role == "agent" else None
        answer = _checked(player, state, coords, now.split(_OWN), f"move {step}")
        sets = table[answer] if role == "host" else drawn
        chance = now.split(_AXES).uniform(spec.dimension)
        chance = torch.where(state.answers(sets), chance, -1.0)
        axis = answer if role == "agent" else chance.argmax(1)
        state, _ = move(state, sets, axis, spec)
        # The first game ends after one move, in the origin, so that every player meets finished
        # games.
        first = torch.arange(num_games, device=device) == 0
        points = state.points.clone()
        points[:, 1:] = torch.where(first[:, None, None], -1, points[:, 1:])
        points[:, :1] = torch.where(first[:, None, None], 0, points[:, :1])
        state = replace(state, points=points, count=torch.where(first, 1, state.count))


def _role_of(player: Any) -> str:
    if isinstance(player, type):
        raise AssertionError(f"the player must be an object, got the class {player.__name__}")
    try:
        role = check_role(getattr(player, "role", None))
    except ValueError as error:
        raise AssertionError(f"the player's attribute {error}") from None
    if not callable(getattr(player, "act", None)):
        raise AssertionError(f"the player must have a method act, {player!r} has none")
    return role


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
        different = (again != answer[index]).nonzero()[:, 0]
        if len(different):
            at = int(different[0])
            raise AssertionError(
                f"the {player.role} {player!r} answers differently when it {how}: row "
                f"{int(index[at])} gave {int(answer[index[at]])}, then {int(again[at])} ({when})"
            )
    return answer


def _asked(
    player: Player, state: GameState, coords: Tensor | None, rng: RowRandom, when: str
) -> Tensor:
    """Return the answer, after checking its form, its values and side effects."""
    who = f"the {player.role} {player!r}"
    given = [state.points, state.count, rng.key, *([] if coords is None else [coords])]
    before, random = [tensor.clone() for tensor in given], torch.random.get_rng_state()
    try:
        answer = player.act(state, coords, rng)
    except Exception as error:
        raise AssertionError(f"{who} raised {type(error).__name__}: {error} ({when})") from error
    if not torch.equal(random, torch.random.get_rng_state()):
        raise AssertionError(f"{who} uses torch's global generator ({when})")
    if not all(map(torch.equal, given, before)):
        raise AssertionError(f"{who} writes to its arguments ({when})")
    try:
        check_answer(answer, state, coords, who)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{error} ({when})") from None
    # A copy, in case the player returns a buffer that it writes to again.
    return answer.to(torch.int64, copy=True)
