"""Several opponents, and which of them plays which game."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from resgym.game.rng import GAMMA
from resgym.game.spec import GameSpec, Role
from resgym.players.base import Player
from resgym.players.registry import resolve_player


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
        players: L players of one role.
        shares: share of the games of each player, above 0, with sum 1; None: in turn.
    """

    players: tuple[Player, ...]
    shares: tuple[float, ...] | None = None
    # On each device, int64 [L]: the index of each player in ``distinct``.
    _positions: dict[torch.device, Tensor] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def distinct(self) -> tuple[Player, ...]:
        """The players without repetitions; rows with the same player are answered in one call."""
        return tuple({id(player): player for player in self.players}.values())

    def seats(self, episode: Tensor) -> Tensor:
        """Return each row's player in its ``episode`` int64 [N], as indices of ``distinct``."""
        if episode.device not in self._positions:
            numbers = {id(player): number for number, player in enumerate(self.distinct)}
            self._positions[episode.device] = torch.tensor(
                [numbers[id(player)] for player in self.players], device=episode.device
            )
        positions, rows = self._positions[episode.device], len(episode)
        game = torch.arange(rows, device=episode.device) + rows * episode.clamp(min=0)
        if self.shares is None:
            return positions[game % len(self.players)]
        # GAMMA is 2^64 divided by the golden ratio; the product wraps around at 2^64, which
        # gives the fractional part.
        place = ((game * GAMMA) >> 11 & (2**53 - 1)).to(torch.float64) * 2.0**-53
        ends = torch.tensor(self.shares, dtype=torch.float64, device=episode.device).cumsum(0)
        return positions[torch.searchsorted(ends[:-1].contiguous(), place, right=True)]


def make_mixture(
    opponents: Sequence[Any] | Mapping[Any, Any], role: Role, spec: GameSpec | None = None
) -> Mixture:
    """Make a mixture from a sequence of players (see `resolve_player`), or from their weights.

    Raises:
        TypeError, ValueError: there is no player, an entry is none, or a weight is not above 0.
    """
    if not opponents:
        raise ValueError("opponent must be at least one player, got none")
    shares = None
    if isinstance(opponents, Mapping):
        for name, weight in opponents.items():
            if isinstance(weight, bool) or not isinstance(weight, (int, float)):
                raise TypeError(
                    f"opponent: the weight of {name!r} must be a number, got {weight!r}"
                )
            if not (weight > 0 and math.isfinite(weight)):
                raise ValueError(
                    f"opponent: the weight of {name!r} must be above 0 and finite, got {weight!r}"
                )
        total = math.fsum(opponents.values())
        shares = tuple(weight / total for weight in opponents.values())
    return Mixture(tuple(resolve_player(each, role, spec) for each in opponents), shares)
