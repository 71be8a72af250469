"""Hosts that do not look at the position."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import ClassVar

import torch
from torch import Tensor

from resgym.game.actions import action_axes
from resgym.game.rng import RowRandom
from resgym.game.spec import Role
from resgym.game.state import GameState
from resgym.players.registry import register_host

__all__ = ["AllCoordHost", "RandomHost", "RandomPairHost"]


@cache
def _pair_actions(dimension: int, device: torch.device) -> Tensor:
    """int64 [D(D-1)/2]: the actions that are sets of two axes, in lexicographic order."""
    number = {axes: action for action, axes in enumerate(action_axes(dimension))}
    pairs = [number[pair] for pair in combinations(range(dimension), 2)]
    return torch.tensor(pairs, dtype=torch.int64, device=device)


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
