"""Simple scripted players: agents, and hosts that do not look at the points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import torch
from torch import Tensor

from resgym.game.actions import pair_to_action
from resgym.game.rng import RowRandom
from resgym.game.rules import move
from resgym.game.spec import GameSpec, Role
from resgym.game.state import GameState
from resgym.players.base import given_sets
from resgym.players.registry import register_agent, register_host


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
        return given_sets(coords).to(torch.uint8).argmax(1)


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
        every_axis = [torch.full_like(state.count, axis) for axis in range(dimension)]
        left = [move(state, coords, axis, spec)[0].count for axis in every_axis]
        return torch.where(coords, torch.stack(left, 1), -1).argmax(1)


@cache
def _pair_actions(dimension: int, device: torch.device) -> Tensor:
    """int64 [D(D-1)/2]: the actions that are sets of two axes, in lexicographic order."""
    first, second = torch.triu_indices(dimension, dimension, 1, device=device)
    return pair_to_action(first, second, dimension)


@register_host("random")
@dataclass(frozen=True)
class RandomHost:
    """Any axis set, uniformly over all 2^D - D - 1."""

    role: ClassVar[Role] = "host"
    compiled: ClassVar[str] = "random"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        dimension = state.points.shape[2]
        return rng.integers(2**dimension - dimension - 1)


@register_host("random_pair")
@dataclass(frozen=True)
class RandomPairHost:
    """Two axes, uniformly over all pairs."""

    role: ClassVar[Role] = "host"
    compiled: ClassVar[str] = "random_pair"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        pairs = _pair_actions(state.points.shape[2], state.device)
        return pairs[rng.integers(len(pairs))]


@register_host("all_coord")
@dataclass(frozen=True)
class AllCoordHost:
    """All axes (the blow-up of a point); action 0 in finished games."""

    role: ClassVar[Role] = "host"
    compiled: ClassVar[str] = "all_coord"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        dimension = state.points.shape[2]
        every = torch.full_like(state.count, 2**dimension - dimension - 2)
        return every.masked_fill(state.finished(), 0)
