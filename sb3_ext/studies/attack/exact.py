"""The truth about small positions: the longest game against a host, the shortest against an agent.

A search proves, start by start, how long an agent can keep a fixed host busy, or how soon a host
can be done with a fixed agent. Over a set of starts that is the rho of a perfect responder, and an
attack that was learned can be held against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch

import resgym
from resgym.game.spec import Role
from resgym.measure.rho import RhoResult, rho_of_games, rho_starts
from resgym.players import CallablePlayer, Player, ZeillingerHost
from sb3_ext.config.sections import ConfigError
from sb3_ext.studies.attack.frozen import FrozenPlayer
from sb3_ext.studies.attack.settings import AttackBudget, ExactSection, read_budget

__all__ = ["ExactResult", "exact_worst_case", "rho_from_dict"]


def rho_from_dict(data: Mapping[str, Any]) -> RhoResult:
    """What `RhoResult.to_dict` gave."""
    names = {field.name for field in fields(RhoResult)} - {"interval"}
    low, high = data["interval_95"]
    return RhoResult(**{name: data[name] for name in names}, interval=(low, high))


@dataclass(frozen=True)
class ExactResult:
    """What a perfect responder reaches on some starts.

    A search that was given up leaves its start with a bound: the game has at least so many moves,
    and whether it ends is open. So there are two figures; they are one if nothing was given up.

    Attributes:
        role: the seat of the player under attack.
        lowest: rho if no open game ended before the cut.
        highest: rho if every open game ended as soon as its bound allows.
        given_up: starts whose search was given up.
        endless: starts on which play provably never ends.
    """

    role: Role
    lowest: RhoResult
    highest: RhoResult
    given_up: int
    endless: int

    @property
    def starts(self) -> int:
        """Number of starts."""
        return self.lowest.games

    @property
    def is_exact(self) -> bool:
        """Whether every start was settled."""
        return self.given_up == 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "role": self.role,
            "starts": self.starts,
            "given_up": self.given_up,
            "endless": self.endless,
            "lowest": self.lowest.to_dict(),
            "highest": self.highest.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ExactResult:
        """What `to_dict` gave."""
        return cls(
            data["role"],
            rho_from_dict(data["lowest"]),
            rho_from_dict(data["highest"]),
            data["given_up"],
            data["endless"],
        )

    def __str__(self) -> str:
        low, high = self.lowest.rho, self.highest.rho
        value = f"{low:.4f}" if self.is_exact else f"{low:.4f} to {high:.4f}"
        known = "" if self.is_exact else f", {self.given_up} searches given up"
        return f"exact {value} on {self.starts} starts{known}, {self.endless} endless"


def exact_worst_case(
    player: Any,
    budget: Any = "points5",
    *,
    role: Role | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ExactResult:
    """The rho of a perfect responder against a fixed, deterministic player.

    Args:
        player: a name, a `Player`, a function, the path of a saved model or a `FrozenPlayer`.
        budget: an `AttackBudget`, or what `read_budget` reads; its ``game``, ``test.seed`` and
            ``exact`` count. The starts are the first ones of the test.
        role: the player's seat where that is not clear.
        progress: called with the number of starts done and of all.

    Returns:
        The exact figure, or bounds of it where searches were given up.

    Raises:
        ConfigError: the player is not deterministic, the game has other rules than the solver
            knows, or the budget asks for no search.
    """
    budget = read_budget(budget)
    section = _section(budget)
    spec = budget.game.spec()
    frozen = FrozenPlayer.of(player, spec, role)
    seated = _seated(frozen.player)
    limit = budget.game.max_moves
    moves, finished, given_up, endless = [], [], [], 0
    starts = rho_starts(spec, section.starts, budget.test.seed).point_lists()
    for number, points in enumerate(starts):
        solution = _solve(points, frozen.role, seated, limit, section.max_positions)
        settled = solution.proved or solution.lower_bound > limit
        endless += solution.proved and solution.value == math.inf
        given_up.append(not settled)
        # A game longer than the limit is cut there, in every measure.
        finished.append(settled and solution.lower_bound <= limit)
        moves.append(int(min(limit, solution.lower_bound)))
        if progress is not None:
            progress(number + 1, len(starts))
    length, won = torch.tensor(moves), torch.tensor(finished)
    open_, none = torch.tensor(given_up), torch.zeros(len(moves), dtype=torch.bool)
    return ExactResult(
        frozen.role,
        rho_of_games(torch.where(open_, limit, length), won, none),
        rho_of_games(length, won | open_, none),
        int(open_.sum()),
        endless,
    )


def _section(budget: AttackBudget) -> ExactSection:
    if budget.exact is None:
        raise ConfigError("exact is null in this budget: give starts and max_positions")
    if budget.game.polytope != "dominance" or budget.game.reposition:
        raise ConfigError(
            "exact needs game.polytope dominance and game.reposition false, got "
            f"{budget.game.polytope} and {str(budget.game.reposition).lower()}"
        )
    return budget.exact


def _seated(player: Player) -> Player:
    # The solver asks Zeillinger's host about points in the order in which they were typed. Here
    # the game is that of the environments, where it sees the sorted state, as every other player.
    if type(player) is ZeillingerHost:
        return CallablePlayer(player.act, "host", "zeillinger")
    return player


def _solve(
    points: Any, role: Role, player: Player, max_depth: int, max_positions: int
) -> resgym.Solution:
    try:
        seats: dict[str, Any] = {role: player}
        return resgym.solve(points, max_depth=max_depth, max_positions=max_positions, **seats)
    except ValueError as error:
        raise ConfigError(f"exact: {error}") from None
