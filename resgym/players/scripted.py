"""Simple scripted players: agents, and hosts that ignore the points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from resgym.game.actions import pair_to_action
from resgym.game.rng import RowRandom
from resgym.game.rules import move
from resgym.game.spec import RULES, GameSpec
from resgym.game.state import GameState
from resgym.players.base import ScriptedAgent, ScriptedHost, given_sets


def uniform(legal: Tensor, rng: RowRandom) -> Tensor:
    """Return int64 [N]: the index of a True entry of bool [N, A], each equally likely."""
    rank = legal.cumsum(1)
    drawn = rng.integers(rank[:, -1].clamp(min=1)) + 1
    return ((rank == drawn[:, None]) & legal).to(torch.uint8).argmax(1)


class RandomAgent(ScriptedAgent):
    """Choose any axis of the host's set, uniformly."""

    rules = RULES
    compiled = "random"
    draws = True

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        return uniform(given_sets(coords), rng)


class ChooseFirstAgent(ScriptedAgent):
    """Choose the lowest axis of the host's set."""

    rules = RULES
    compiled = "choose_first"
    invariant = "scale"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        return given_sets(coords).to(torch.uint8).argmax(1)


class ChooseLastAgent(ScriptedAgent):
    """Choose the highest axis of the host's set."""

    rules = RULES
    compiled = "choose_last"
    invariant = "scale"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        coords = given_sets(coords)
        return coords.shape[1] - 1 - coords.flip(1).to(torch.uint8).argmax(1)


@dataclass(frozen=True)
class GreedyPointsAgent(ScriptedAgent):
    """Choose the axis of the host's set that leaves the most points; ties go to the lowest.

    A move that would overflow counts as if it left the position unchanged.

    Attributes:
        spec: the game, which says how points are dropped; dominance if None.
    """

    spec: GameSpec | None = None
    rules = ("basic", "polyhedra")
    invariant = "scale"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        coords = given_sets(coords)
        dimension = state.points.shape[2]
        # The sizes come from the position; repositioning changes no count.
        spec = replace(self.spec or GameSpec(), dimension=dimension, reposition=False)
        every_axis = [torch.full_like(state.count, axis) for axis in range(dimension)]
        left = [move(state, coords, axis, spec)[0].count for axis in every_axis]
        return torch.where(coords, torch.stack(left, 1), -1).argmax(1)


class RandomHost(ScriptedHost):
    """Choose any legal set uniformly: with the default rule one of 2^D - D - 1."""

    rules = RULES
    compiled = "random"
    draws = True

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        legal = state.legal_sets()
        return rng.integers(state.num_host_actions) if legal is None else uniform(legal, rng)


class RandomPairHost(ScriptedHost):
    """Choose two axes, uniformly over all pairs."""

    rules = ("basic", "thom")
    compiled = "random_pair"
    draws = True

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        dimension = state.points.shape[2]
        pairs = torch.triu_indices(dimension, dimension, 1, device=state.device)
        first, second = pairs[:, rng.integers(pairs.shape[1])]
        return pair_to_action(first, second, dimension)


class AllCoordHost(ScriptedHost):
    """Choose all axes, the blow-up of a point; action 0 in finished games."""

    rules = RULES
    compiled = "all_coord"
    invariant = "scale"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        every = torch.full_like(state.count, state.num_host_actions - 1)
        return every.masked_fill(state.finished(), 0)
