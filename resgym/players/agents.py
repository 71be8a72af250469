"""Scripted agents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from resgym.game.rng import RowRandom
from resgym.game.rules import move
from resgym.game.spec import GameSpec, Role
from resgym.game.state import GameState
from resgym.players.base import given_sets
from resgym.players.registry import register_agent

__all__ = ["ChooseFirstAgent", "ChooseLastAgent", "GreedyPointsAgent", "RandomAgent"]


@register_agent("random")
@dataclass(frozen=True)
class RandomAgent:
    """Any axis of the host's set, uniformly."""

    role: ClassVar[Role] = "agent"
    compiled: ClassVar[str] = "random"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        coords = given_sets(coords)
        rank = coords.cumsum(1)
        drawn = rng.integers(rank[:, -1].clamp(min=1)) + 1
        return ((rank == drawn[:, None]) & coords).to(torch.uint8).argmax(1)


@register_agent("choose_first")
@dataclass(frozen=True)
class ChooseFirstAgent:
    """The lowest axis of the host's set."""

    role: ClassVar[Role] = "agent"
    compiled: ClassVar[str] = "choose_first"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        coords = given_sets(coords)
        return coords.to(torch.uint8).argmax(1)


@register_agent("choose_last")
@dataclass(frozen=True)
class ChooseLastAgent:
    """The highest axis of the host's set."""

    role: ClassVar[Role] = "agent"
    compiled: ClassVar[str] = "choose_last"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        coords = given_sets(coords)
        return coords.shape[1] - 1 - coords.flip(1).to(torch.uint8).argmax(1)


@register_agent("greedy_points")
@dataclass(frozen=True)
class GreedyPointsAgent:
    """The axis of the host's set that leaves the most points; ties go to the lowest axis.

    A move that would overflow counts as leaving the position as it is.

    Attributes:
        spec: the game, for how points are pruned; dominance pruning if None.
    """

    spec: GameSpec | None = None
    role: ClassVar[Role] = "agent"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        coords = given_sets(coords)
        dimension = state.points.shape[2]
        # The sizes come from the position; reposition changes no count.
        spec = replace(self.spec or GameSpec(), dimension=dimension, reposition=False)
        left = torch.stack(
            [
                move(state, coords, torch.full_like(state.count, axis), spec)[0].count
                for axis in range(dimension)
            ],
            dim=1,
        )
        return torch.where(coords, left, -1).argmax(1)
