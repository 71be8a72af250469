"""What a budget measures of a player without training: rho, and the truth about it.

The truth is the longest game against a host, the shortest against an agent. Nothing is left to
chance or to training: all answers that the other seat has are walked through, see
`resgym.measure.worst_case`. Over a set of starts that is the rho of a perfect responder, beside
which stands the least depth that the solver proves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

import resgym
from resgym.game.spec import GameSpec, Role
from resgym.game.state import GameState
from resgym.measure.rho import RhoResult, rho, rho_bounds, rho_of_games, rho_starts
from resgym.measure.worst_case import STARTS_TOGETHER, worst_case_moves
from resgym.players import Player
from sb3_ext.cluster.pieces import Spread
from sb3_ext.config.sections import ConfigError, errors_of
from sb3_ext.studies.attack.frozen import FrozenPlayer
from sb3_ext.studies.attack.result import ExactResult
from sb3_ext.studies.attack.settings import AttackBudget, read_budget


def rho_against(player: Any, role: Role, budget: AttackBudget, other: Any) -> RhoResult:
    """Rho of a player of this seat and one of the other in the games of a budget's test."""
    pair = (player, other) if role == "host" else (other, player)
    return rho(*pair, games=budget.test.games, seed=budget.test.seed, **budget.game.to_dict())


def scripted_rho(player: Any, role: Role, budget: AttackBudget) -> dict[str, RhoResult]:
    """`rho_against` every scripted responder of a budget, by name."""
    names = budget.scripted.agents if role == "host" else budget.scripted.hosts
    return {name: rho_against(player, role, budget, name) for name in names}


def exact_worst_case(
    player: Any,
    budget: Any = "points5",
    *,
    role: Role | None = None,
    progress: Callable[[str], None] = lambda line: None,
    spread: Spread = map,
) -> ExactResult:
    """The rho of a perfect responder against a fixed player; bounds where searches were given up.

    Args:
        player: as for `exploit`.
        budget: as for `exploit`; its ``game``, ``test.seed`` and ``exact`` count.
        role: the player's seat where that is not clear.
        progress: called with a line now and then.
        spread: searches some starts here and some there, see `spreading`.

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
    spec, limit, positions = game.spec(), game.max_moves, section.max_positions
    frozen = FrozenPlayer.of(player, spec, role)
    if frozen.draws_numbers(spec):
        raise ConfigError(f"exact: {frozen.role} must be deterministic, got {frozen.name!r}")
    starts = rho_starts(spec, section.starts, budget.test.seed, game.starts)
    firsts = range(0, section.starts, STARTS_TOGETHER)
    pieces = [starts.select(slice(first, first + STARTS_TOGETHER)) for first in firsts]
    search = partial(_searched, frozen.player, spec, limit, positions)
    parts: list[tuple[Tensor, ...]] = []
    for part in spread(search, pieces):
        parts.append(part)
        done = sum(len(length) for length, *_ in parts)
        progress(f"{frozen.name}: {done} of {section.starts} starts searched")
    moves, given_up, least, proved = map(torch.cat, zip(*parts, strict=True))
    # A game longer than the limit is cut there, in every measure.
    cut, length = moves > limit, moves.clamp(max=limit)
    most = torch.full_like(length, limit)
    if frozen.role == "host":  # no better host can keep below the lower bound
        proved |= ~given_up & ~cut & (length == least)
    else:  # no agent holds up the optimal host for longer than that
        most = torch.where(proved, least, most).clamp(max=limit)
        given_up &= length < most
    lowest, highest = rho_bounds(moves, given_up, most, limit)
    compared = ~given_up & proved
    apart = (length - least).abs()[compared]
    return ExactResult(
        role=frozen.role,
        lowest=lowest,
        highest=highest,
        given_up=int(given_up.sum()),
        cut=int(cut.sum()),
        starts=section.starts,
        optimum=rho_of_games(least, torch.ones_like(cut), torch.zeros_like(cut)),
        unproved=int((~proved).sum()),
        optimal=int((apart == 0).sum()),
        largest_gap=max(apart.tolist(), default=0),
    )


def _searched(
    player: Player, spec: GameSpec, limit: int, positions: int, starts: GameState
) -> tuple[Tensor, ...]:
    """What `worst_case_moves` gives from some starts, the least depth, and whether it is proved."""
    with errors_of("exact"):
        length, given_up = worst_case_moves(player, starts, spec, limit, positions)
        optima = [resgym.solve(points, max_positions=positions) for points in starts.point_lists()]
    least = torch.tensor([int(each.lower_bound) for each in optima])
    return length, given_up, least, torch.tensor([each.proved for each in optima])
