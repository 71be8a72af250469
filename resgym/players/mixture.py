"""The players of the other seat: one, several in turn or by shares, or one for each row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from resgym.game.rng import GAMMA, RowRandom
from resgym.game.spec import GameSpec, Role
from resgym.game.stepping import EpisodeState
from resgym.players.asking import ask_player, ask_players
from resgym.players.base import Player, begin_games, own_attribute
from resgym.players.registry import resolve_player
from resgym.texts import shown


@dataclass(frozen=True)
class Mixture:
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
            position, rng = position.select(rows), rng.select(rows)
            coords = None if coords is None else coords[rows]
        if len(self.players) == 1:
            return ask_player(self.players[0], position, coords, rng, rows)
        seats = self.seats(games.episode)
        seats = seats if rows is None else seats[rows]
        return ask_players(self.players, seats, position, coords, rng, rows)


def make_mixture(given: Any, role: Role, spec: GameSpec | None = None) -> Mixture:
    """The mixture of a player, of a sequence of them, or of their weights above 0.

    Players are what `resolve_player` takes.

    Raises:
        TypeError, ValueError: there is no player, an entry is none, or a weight is not above 0.
    """
    several = isinstance(given, Sequence) and not isinstance(given, str)
    if not several and not isinstance(given, Mapping):
        return Mixture((resolve_player(given, role, spec),))
    if not given:
        raise ValueError("opponent must be at least one player, got none")
    players, shares = tuple(resolve_player(each, role, spec) for each in given), None
    if isinstance(given, Mapping):
        for name, weight in given.items():
            if not isinstance(weight, (int, float)) or not 0 < weight < math.inf:
                what = f"opponent: the weight of {shown(name)}"
                raise ValueError(f"{what} must be a number above 0, got {shown(weight)}")
        total = math.fsum(given.values())
        shares = tuple(weight / total for weight in given.values())
    return Mixture(players, shares)
