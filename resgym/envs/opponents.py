"""The players of the other seat: one, several in turn or by weight, or one per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from resgym.envs.arguments import parse_integers
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec, Role
from resgym.game.stepping import EpisodeState
from resgym.players import (
    MixedPlayer,
    Mixture,
    Player,
    ask_player,
    ask_players,
    compiled_name,
    make_mixture,
    player_name,
    resolve_player,
)


class Opponents:
    """The players of a role in N games; ``given`` and ``assignment`` as in `set_opponent`.

    Attributes:
        role: role of the players.
        names: names of the players, as given.
        compiled: name of the only player if a backend may play it itself, or None.
    """

    def __init__(
        self,
        given: Any,
        assignment: Any,
        role: Role,
        spec: GameSpec,
        num_games: int,
        device: torch.device,
    ) -> None:
        several = isinstance(given, Mapping) or (
            isinstance(given, Sequence) and not isinstance(given, str)
        )
        if assignment is not None and (not several or isinstance(given, Mapping)):
            raise ValueError("assignment needs a sequence of opponents")
        self.role, self.compiled = role, None
        self._player: Player | Mixture
        if several:
            mixture = self._player = make_mixture(given, role, spec)
            seated: Sequence[Player] = mixture.players
            if assignment is not None:
                rows = parse_integers("assignment", assignment, num_games, device)
                self._player = MixedPlayer(seated, rows)
        else:
            given, player = [given], resolve_player(given, role, spec)
            self._player, seated, self.compiled = player, [player], compiled_name(player)
        self._names = {id(p): player_name(own) for p, own in zip(seated, given, strict=True)}
        self.names = ", ".join(self._names.values())

    @property
    def players(self) -> list[Player]:
        """The distinct players."""
        one = self._player
        several = one.players if isinstance(one, (Mixture, MixedPlayer)) else [one]
        return list({id(player): player for player in several}.values())

    def name(self, games: EpisodeState, row: int) -> str:
        """Return the name of a row's player."""
        player = self._player
        if isinstance(player, Mixture):
            player = player.distinct[int(player.seats(games.episode)[row])]
        elif isinstance(player, MixedPlayer):
            player = player.players[int(player.assignment[row])]
        return self._names.get(id(player), player_name(player))

    def ask(
        self, games: EpisodeState, coords: Tensor | None, rng: RowRandom, rows: Tensor | None
    ) -> Tensor:
        """Return the answers; see `resgym.game.stepping.Ask`."""
        position, player = games.position, self._player
        seats = player.seats(games.episode) if isinstance(player, Mixture) else None
        if rows is not None:
            position, rng = position.select(rows), rng.select(rows)
            coords = None if coords is None else coords[rows]
            seats = None if seats is None else seats[rows]
        if isinstance(player, Mixture):
            assert seats is not None
            return ask_players(player.distinct, seats, position, coords, rng, rows)
        return ask_player(player, position, coords, rng, rows)
