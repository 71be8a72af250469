"""The strength of a player: its worst case, compared with the optimum."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from resgym.game.spec import GameSpec, Role
from resgym.game.state import GameState
from resgym.measure.rho import rho_of_games
from resgym.players import Player
from resgym.solver.responses import TOGETHER, worst_cases
from resgym.solver.solve import solve


class Strength(NamedTuple):
    """The worst case of a player from N starts.

    Attributes:
        role: the seat of the player.
        limit: games are cut after this many moves.
        moves: int64 [N]: of the longest game against a host, the shortest against an agent; more
            than ``limit``: it continues.
        open: bool [N]: the search was given up, the game has at least ``moves``.
        least: int64 [N]: the least depth, what a perfect host and agent play.
        proved: bool [N]: ``least`` is exact, not just a lower bound.
    """

    role: Role
    limit: int
    moves: Tensor
    open: Tensor
    least: Tensor
    proved: Tensor

    @property
    def per_start(self) -> Tensor:
        """float64 [N]: 1 for perfect play, 0 where a game is open or continues beyond the limit."""
        pair = (self.least, self.moves) if self.role == "host" else (self.moves, self.least)
        share = pair[0] / pair[1].clamp(min=1).double()
        return torch.where(self.open | (self.moves > self.limit), 0.0, share)

    def summary(self) -> dict[str, Any]:
        """Plain data: rho of a perfect opponent, and how far it is from the optimum.

        ``lowest`` and ``highest`` are the rho if no open game ends before the cut (against an
        agent: before the proved least depth), and if each ends as soon as its bound allows.
        ``cut`` games are proved to continue beyond the limit, ``given_up`` searches are open;
        ``optimal`` games are proved to be as long as the optimum and ``largest_gap`` is how far the
        others are from it; ``unproved`` optima count with their lower bounds.
        """
        _, limit, moves, given_up, least, proved = self
        cut, length = moves > limit, moves.clamp(max=limit)
        most = torch.full_like(length, limit)
        if self.role == "host":  # no better host can keep below the lower bound
            proved = proved | (~given_up & ~cut & (length == least))
        else:  # no agent holds up the optimal host for longer than that
            most = torch.where(proved, least, most).clamp(max=limit)
            given_up = given_up & (length < most)
        none, longest = torch.zeros_like(cut), torch.where(given_up, most, length)
        known = ~cut & (~given_up | (most < limit))
        apart = (length - least).abs()[~given_up & proved]
        return {
            "starts": len(moves),
            "lowest": rho_of_games(longest, known, none).to_dict(),
            "highest": rho_of_games(length, ~cut, none).to_dict(),
            "optimum": rho_of_games(least, ~none, none).to_dict(),
            "optimal": int((apart == 0).sum()),
            "largest_gap": max(apart.tolist(), default=0),
            "cut": int(cut.sum()),
            "given_up": int(given_up.sum()),
            "unproved": int((~proved).sum()),
        }


def strength(
    player: Player,
    starts: GameState,
    spec: GameSpec,
    limit: int = 200,
    positions: int = 20_000,
    spread: Callable[..., Iterable[Any]] = map,
) -> Strength:
    """Return the worst case of a deterministic player, by search.

    Args:
        player: its seat is ``player.role``.
        starts: N positions.
        spec: the game, by dominance and without repositioning.
        limit: games are cut after this many moves.
        positions: looked at for a start, after which a search is given up.
        spread: `map`, or the like in other processes.

    Raises:
        ValueError: the solver does not know the rules of the game.
    """
    if spec.polytope != "dominance" or spec.reposition:
        raise ValueError(
            f"polytope, reposition: got {spec.polytope}, {spec.reposition}; expected dominance, "
            "False, the solver's rules"
        )
    search = partial(_searched, player, spec, limit, positions)
    parts = map(starts.select, torch.arange(starts.num_games).split(TOGETHER))
    found = zip(*spread(search, parts), strict=True)
    return Strength(player.role, limit, *map(torch.cat, found))


def _searched(
    player: Player, spec: GameSpec, limit: int, positions: int, starts: GameState
) -> tuple[Tensor, ...]:
    solved = [solve(points, max_positions=positions) for points in starts.point_lists()]
    least = torch.tensor([int(each.lower_bound) for each in solved])
    proved = torch.tensor([each.proved for each in solved])
    moves, most = worst_cases(player, starts, spec, limit, positions)
    return moves, moves < most, least, proved
