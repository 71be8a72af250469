"""A host that looks to the end of the game: what it answers is what its games prove to be best."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec, Role
from resgym.game.state import GameState
from resgym.kernels import quickest_backend
from resgym.measure.worst_case import worst_case_moves
from resgym.players import Player, ask_player, player_name

_AT_ONCE = 500
"""Positions walked from at once, for the sake of memory."""


class ImprovedHost:
    """Names the set after which the longest game of another host is the shortest.

    The longest game is walked through from every position that a set can lead to, with the other
    host naming all later sets. This is one exact step of policy improvement: where the walks come
    to an end, the longest game is never longer than the other host's own.

    Args:
        host: the other host, which has to be deterministic; among equally good sets its own wins.
        max_moves: games that go on for longer are as good as endless.
        max_positions: so is a position from which more have to be looked at.
    """

    role: ClassVar[Role] = "host"

    def __init__(self, host: Player, max_moves: int = 200, max_positions: int = 5000) -> None:
        self.name = f"{player_name(host)} with lookahead"
        self.host, self.max_moves, self.max_positions = host, max_moves, max_positions

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.host!r}, {self.max_moves}, {self.max_positions})"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`; takes milliseconds for a position."""
        usual = ask_player(self.host, state, None, rng).cpu()
        state = GameState(state.points.cpu(), state.count.cpu())
        games, rows, axes = state.points.shape
        spec, sets = GameSpec(axes, rows), host_action_table(axes)
        row, option, axis = sets.expand(games, *sets.shape).nonzero().unbind(1)
        backend = quickest_backend(state.device)
        after, overflow = backend.move(state.select(row), sets[option], axis, spec)
        moves = self._longest(after, spec).masked_fill(overflow, self.max_moves + 1)
        worst = moves.new_zeros(games, len(sets))
        worst.view(-1).scatter_reduce_(0, row * len(sets) + option, moves, "amax")
        # Twice, to make room for a preference among equals.
        score = (2 * worst).scatter_add(1, usual[:, None], -torch.ones_like(usual[:, None]))
        return score.argmin(1).to(rng.key.device)

    def _longest(self, state: GameState, spec: GameSpec) -> Tensor:
        """int64 [N]: the other host's longest games, ``max_moves`` + 1 for what is not known."""
        points, place = torch.unique(state.points, dim=0, return_inverse=True)
        count = torch.empty_like(points[:, 0, 0]).scatter_(0, place, state.count)
        found = []
        for part in torch.arange(len(count)).split(_AT_ONCE):
            starts = GameState(points, count).select(part)
            limits = (self.max_moves, self.max_positions)
            moves, given_up = worst_case_moves(self.host, starts, spec, *limits)
            found.append(moves.masked_fill(given_up, self.max_moves + 1))
        return torch.cat(found)[place]
