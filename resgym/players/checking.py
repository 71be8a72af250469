"""The contract of a player as public code."""

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
from resgym.players.asking import check_answer, check_form
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
    """Plays games with a player and raises if it breaks the contract of `Player`.

    It must answer legally in unfinished and in finished games, with int64 [N] on the right device;
    the same way twice; a row the same way alone, among other rows and in another order; without
    writing to what it is handed and without drawing from torch's global generator.

    A player of a fixed batch is asked for its rows through ``select`` (see `rows_of`). At least 4
    games are played, of ``spec`` or of a default game of ``dimension`` axes.

    Raises:
        AssertionError: the player breaks the contract; the message says how.
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
        answer = _Question(player, state, coords, now.split(_OWN)).check(f"move {step}")
        sets = table[answer] if role == "host" else drawn
        chance = now.split(_AXES).uniform(spec.dimension)
        chance = torch.where(state.answers(sets), chance, -1.0)
        axis = answer if role == "agent" else chance.argmax(1)
        state, _ = move(state, sets, axis, spec)
        # The first game is at its end after one move, in the origin, so that every player meets
        # finished games.
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


class _Question:
    """One call of a player, asked in several ways."""

    def __init__(
        self, player: Player, state: GameState, coords: Tensor | None, rng: RowRandom
    ) -> None:
        self.player, self.state, self.coords, self.rng = player, state, coords, rng
        self.who = f"the {player.role} {player!r}"

    def check(self, when: str) -> Tensor:
        """The player's answer, once every way of asking has given the same."""
        self.when = when
        num_games = self.state.num_games
        rows = torch.arange(num_games, device=self.state.device)
        answer = self._ask(rows, "")
        try:
            check_answer(answer, self.state, self.coords, self.who)
        except ValueError as error:
            raise AssertionError(f"{error} ({when})") from None
        self._same(self._ask(rows, ""), answer, rows, "is asked again")
        order = self.rng.split(7).key.argsort()
        self._same(self._ask(order, "in another order"), answer, order, "has its rows reordered")
        half = rows[: num_games // 2]
        self._same(self._ask(half, "with half the rows"), answer, half, "gets half the rows")
        for row in (0, 1, num_games - 1):
            alone = rows[row : row + 1]
            self._same(self._ask(alone, "with one row"), answer, alone, "gets a row alone")
        return answer

    def _same(self, got: Tensor, answer: Tensor, rows: Tensor, how: str) -> None:
        different = (got != answer[rows]).nonzero()[:, 0]
        if len(different):
            at = int(different[0])
            raise AssertionError(
                f"{self.who} answers differently when it {how}: row {int(rows[at])} gave "
                f"{int(answer[rows[at]])}, then {int(got[at])} ({self.when})"
            )

    def _ask(self, rows: Tensor, how: str) -> Tensor:
        """The answer to some rows, after checks of its form and of side effects."""
        place = ", ".join(filter(None, [self.when, how]))
        everything = len(rows) == self.state.num_games and not how
        player = self.player if everything else rows_of(self.player, rows)
        state, rng = self.state.select(rows), self.rng.select(rows)
        coords = None if self.coords is None else self.coords[rows]
        given = [state.points, state.count, rng.key, *([] if coords is None else [coords])]
        before = [tensor.clone() for tensor in given]
        random = torch.random.get_rng_state()
        try:
            answer = player.act(state, coords, rng)
        except Exception as error:
            raise AssertionError(
                f"{self.who} raised {type(error).__name__}: {error} ({place})"
            ) from error
        if not torch.equal(random, torch.random.get_rng_state()):
            raise AssertionError(f"{self.who} draws from torch's global generator ({place})")
        for name, now, then in zip(
            ("state.points", "state.count", "rng.key", "coords"), given, before, strict=False
        ):
            if not torch.equal(now, then):
                raise AssertionError(f"{self.who} writes to {name} ({place})")
        if isinstance(answer, Tensor) and answer.dtype != torch.int64:
            raise AssertionError(f"{self.who} must return int64, got {answer.dtype} ({place})")
        try:
            check_form(answer, state, self.who)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"{error} ({place})") from None
        # A copy, in case the player hands out a buffer that it writes to again.
        return answer.clone()
