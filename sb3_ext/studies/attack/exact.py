"""The truth about small positions: the longest game against a host, the shortest against an agent.

A search proves, start by start, how long an agent can keep a fixed host busy, or how soon a host
can be done with a fixed agent. Over a set of starts that is the rho of a perfect responder, and an
attack that was learned can be held against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

import resgym
from resgym.game.spec import Role
from resgym.measure.rho import rho_of_games, rho_starts
from resgym.players import CallablePlayer, ZeillingerHost
from sb3_ext.config.sections import ConfigError
from sb3_ext.studies.attack.frozen import FrozenPlayer
from sb3_ext.studies.attack.result import ExactResult
from sb3_ext.studies.attack.settings import read_budget


def exact_worst_case(
    player: Any,
    budget: Any = "points5",
    *,
    role: Role | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ExactResult:
    """The rho of a perfect responder against a fixed player; bounds where searches were given up.

    Args:
        player: as for `exploit`.
        budget: as for `exploit`; its ``game``, ``test.seed`` and ``exact`` count.
        role: the player's seat where that is not clear.
        progress: called with the number of starts done and of all.

    Raises:
        ConfigError: the player is not deterministic, the game has other rules than the solver
            knows, or the budget asks for no search.
    """
    budget = read_budget(budget)
    section, game = budget.exact, budget.game
    if section is None:
        raise ConfigError("exact is null in this budget: give starts and max_positions")
    if game.polytope != "dominance" or game.reposition:
        raise ConfigError(
            "exact needs game.polytope dominance and game.reposition false, got "
            f"{game.polytope} and {str(game.reposition).lower()}"
        )
    spec, limit = game.spec(), game.max_moves
    frozen = FrozenPlayer.of(player, spec, role)
    seated = frozen.player
    if type(seated) is ZeillingerHost:
        # The solver asks Zeillinger's host about points in the order in which they were typed. Here
        # the game is that of the environments, where it sees the sorted state, as other players do.
        seated = CallablePlayer(seated.act, "host", "zeillinger")
    question: dict[str, Any] = {frozen.role: seated, "max_depth": limit}
    solutions = []
    starts = rho_starts(spec, section.starts, budget.test.seed).point_lists()
    for points in starts:
        try:
            solution = resgym.solve(points, max_positions=section.max_positions, **question)
        except ValueError as error:
            raise ConfigError(f"exact: {error}") from None
        solutions.append(solution)
        if progress is not None:
            progress(len(solutions), len(starts))
    # A game longer than the limit is cut there, in every measure.
    length = torch.tensor([int(min(limit, each.lower_bound)) for each in solutions])
    cut = torch.tensor([each.lower_bound > limit for each in solutions])
    given_up = ~cut & ~torch.tensor([each.proved for each in solutions])
    none = torch.zeros_like(cut)
    return ExactResult(
        role=frozen.role,
        lowest=rho_of_games(torch.where(given_up, limit, length), ~cut & ~given_up, none),
        highest=rho_of_games(length, ~cut, none),
        given_up=int(given_up.sum()),
        endless=sum(each.proved and each.value == math.inf for each in solutions),
        starts=len(starts),
    )
