"""Plays the game on lists of points: moves that keep the order of the points, and seated players.

Positions here are tuples of points in the order in which they were typed. Pruning keeps that order,
so a chart reads like the polynomial it comes from, and Zeillinger's host, who takes the first of
several equally good pairs of points, is asked about the list itself. All other players get the
sorted state of the environments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from resgym.game.actions import action_axes, host_action_table
from resgym.game.plain import Position, prune
from resgym.game.rng import RowRandom
from resgym.game.spec import MAX_COORDINATE, GameSpec, Polytope, Role
from resgym.game.state import GameState, state_from_points
from resgym.players import Player, ZeillingerHost, ask_player, player_name, resolve_player
from resgym.polynomials.monomials import Exponents

_DEFAULT_ROWS = 20


class OrderedRule:
    """The rule of a `GameSpec` on ordered lists of points, with Python integers."""

    def __init__(
        self, dimension: int, polytope: Polytope = "dominance", reposition: bool = False
    ) -> None:
        self.spec = GameSpec(dimension, 2, polytope=polytope, reposition=reposition)

    def start(self, points: Iterable[tuple[int, ...]]) -> Position:
        """The points of a start that matter."""
        given = dict.fromkeys(points)
        least = set(prune(given))
        kept = [point for point in given if point in least]
        if self.spec.polytope == "newton" and len(kept) > 2:
            spec = GameSpec(self.spec.dimension, len(kept), polytope="newton")
            vertices = set(state_from_points([kept], spec).point_lists()[0])
            kept = [point for point in kept if point in vertices]
        if self.spec.reposition:
            lowest = tuple(map(min, zip(*kept, strict=True)))
            kept = [tuple(a - b for a, b in zip(point, lowest, strict=True)) for point in kept]
        return tuple(kept)

    def after(self, points: Position, axes: tuple[int, ...], axis: int) -> Position | None:
        """The position after a move; None if a coordinate would pass 2^59."""
        totals = [sum(point[k] for k in axes) for point in points]
        if max(totals) > MAX_COORDINATE:
            return None
        return self.start(
            (*point[:axis], total, *point[axis + 1 :])
            for point, total in zip(points, totals, strict=True)
        )


class Seat:
    """A player, of what `resolve_player` takes, asked about lists of points.

    The start gives the number of axes and the least number of rows. A state has ``max_num_points``
    rows; by default the player's own, or those of its ``spec``, or 20.
    """

    def __init__(
        self,
        player: Any,
        role: Role,
        position: Exponents,
        *,
        polytope: Polytope = "dominance",
        max_num_points: int | None = None,
    ) -> None:
        dimension = position.dimension
        rows = max(_DEFAULT_ROWS, len(position))
        self.player: Player = resolve_player(
            player, role, GameSpec(dimension, rows, polytope=polytope)
        )
        if max_num_points is None:
            own = getattr(self.player, "max_num_points", None)
            own = own or getattr(getattr(self.player, "spec", None), "max_num_points", None)
            max_num_points = max(own or _DEFAULT_ROWS, len(position))
        # Positions arrive pruned; pruning them again by dominance changes nothing.
        self.spec = GameSpec(dimension, max_num_points)
        self.reads_order = type(self.player) is ZeillingerHost
        self.name = player if isinstance(player, str) else player_name(self.player)
        self._numbers = {axes: action for action, axes in enumerate(action_axes(dimension))}

    def host_sets(
        self, positions: Sequence[Position], rng: RowRandom | None = None
    ) -> list[tuple[int, ...]]:
        """The host's set in every position."""
        sets = action_axes(self.spec.dimension)
        return [sets[action] for action in self._answers(positions, None, rng)]

    def agent_axes(
        self,
        positions: Sequence[Position],
        sets: Sequence[tuple[int, ...]],
        rng: RowRandom | None = None,
    ) -> list[int]:
        """The agent's axis for a position and a host's set each."""
        actions = torch.tensor([self._numbers[axes] for axes in sets])
        return self._answers(positions, host_action_table(self.spec.dimension)[actions], rng)

    def _answers(
        self, positions: Sequence[Position], coords: Tensor | None, rng: RowRandom | None
    ) -> list[int]:
        sizes, width = [len(position) for position in positions], self.spec.max_num_points
        if max(sizes) > width:
            raise ValueError(f"max_num_points must be at least {max(sizes)} here, got {width}")
        if self.reads_order:
            absent = [-1] * self.spec.dimension
            rows = [[*position, *[absent] * (width - len(position))] for position in positions]
            state = GameState(torch.tensor(rows), torch.tensor(sizes))
        else:
            state = state_from_points([list(position) for position in positions], self.spec)
        rng = RowRandom(torch.zeros_like(state.count)) if rng is None else rng
        answers: list[int] = ask_player(self.player, state, coords, rng).tolist()
        return answers
