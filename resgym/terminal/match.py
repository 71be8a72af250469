"""One game in order: a person in one or both seats, a player in the other."""

from __future__ import annotations

from typing import Any

import torch

from resgym.game.exact import OrderedRule, Position
from resgym.game.rng import RowRandom, Stream
from resgym.game.spec import Axes, GameSpec, Role, check_integer
from resgym.players import ask_player
from resgym.players.seats import Seat
from resgym.polynomials.monomials import Exponents

Move = tuple[Axes, int]
"""The host's set and the agent's axis."""


def episode_random(seed: int) -> RowRandom:
    """Return the random numbers of an environment's first episode after a reset with this seed."""
    zero = torch.zeros(1, dtype=torch.int64)
    return RowRandom.for_episode(zero + check_integer("seed", seed, 0, 2**63 - 1), zero)


def other_seat(seat: str) -> Role | None:
    """Return the opponent's role for a person's seat; None if the person plays both."""
    roles: dict[str, Role] = {"host": "agent", "agent": "host"}
    return roles.get(seat)


class Match:
    """The positions and moves of a game; moves can be taken back.

    Args:
        start: the first position.
        seat: the person's: ``host``, ``agent``, or ``both``.
        opponent: the player in the other seat, see `resolve_player`.
        seed: seed of an opponent that draws random numbers.
        max_moves: number of moves after which the game is cut.

    Attributes:
        positions: one more than `moves`.
        opponent: the player in the other seat; None if the person has both.
    """

    def __init__(
        self, start: Exponents, seat: str, opponent: Any, seed: int = 0, max_moves: int = 200
    ) -> None:
        self._rule = OrderedRule(GameSpec(start.dimension))
        self._random, self._max_moves = episode_random(seed), max_moves
        self.positions: list[Position] = [self._rule.start(start)]
        self.moves: list[Move] = []
        self._overflowed = False
        role, points = other_seat(seat), Exponents(self.points, start.variables)
        self.opponent = None if role is None else Seat(opponent, role, points, ask=ask_player)

    @property
    def points(self) -> Position:
        """The current position."""
        return self.positions[-1]

    @property
    def ending(self) -> str | None:
        """Why the game is over: ``resolved``, ``cut`` or ``overflow``; None while it continues."""
        if self._overflowed:
            return "overflow"
        cut = "cut" if len(self.moves) >= self._max_moves else None
        return self._rule.ending(self.points) or cut

    def ask_host(self) -> Axes:
        """Return the set that the opponent chooses."""
        assert self.opponent is not None
        rng = self._random.at(2 * len(self.moves), Stream.HOST)
        return self.opponent.host_sets([self.points], rng)[0]

    def ask_agent(self, axes: Axes) -> int:
        """Return the axis that the opponent answers."""
        assert self.opponent is not None
        rng = self._random.at(2 * len(self.moves) + 1, Stream.AGENT)
        return self.opponent.agent_axes([self.points], [axes], rng)[0]

    def play(self, axes: Axes, axis: int) -> bool:
        """Play a legal move; return False if it would exceed 2^59, which ends the game."""
        after = self._rule.after(self.points, axes, axis)
        if after is None:
            self._overflowed = True
            return False
        self.moves.append((axes, axis))
        self.positions.append(after)
        return True

    def undo(self) -> bool:
        """Take back a move, if there is one."""
        if not self.moves:
            return False
        self.moves.pop()
        self.positions.pop()
        return True
