"""Scripted players: simple agents, hosts that ignore the points, and Zeillinger's host.

D. Zeillinger, "A short solution to Hironaka's polyhedra game", Enseign. Math. 52 (2006). For two
points p, q let v = p - q, L = max v - min v, and S the number of axes where v is max v plus the
number where it is min v. Take the v of least (L, S) and choose an axis of its largest and one of
its smallest entry. Then (L, S) falls or a point disappears, whatever the agent answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import torch
from torch import Tensor

from resgym.game.pruning import used_rows
from resgym.game.rng import RowRandom
from resgym.game.rules import move
from resgym.game.spec import RULES, GameSpec, pair_to_action
from resgym.game.state import GameState
from resgym.players.registry import ScriptedAgent, ScriptedHost, given_sets


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
        return given_sets(coords).cumsum(1).argmax(1)  # the first place of the largest sum


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
        dimension = state.dimension
        # The sizes come from the position; repositioning changes no count.
        spec = replace(self.spec or GameSpec(), dimension=dimension, reposition=False)
        left = [
            move(state, coords, torch.full_like(state.count, axis), spec)[0].count
            for axis in range(dimension)
        ]
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

    compiled = "random_pair"
    draws = True

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        dimension = state.dimension
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
        return torch.where(state.finished(), 0, state.num_host_actions - 1)


class ZeillingerHost(ScriptedHost):
    """Choose the pair of points with the least (L, S), the first in list order.

    Points are in descending lexicographic order, pairs (i, j), i < j, in the order (0, 1), (0, 2),
    ..., (1, 2), ...; v = p_i - p_j, and the set is the first axis of the least entry of v with the
    first axis of the largest. If all entries of v are equal the set is {0, 1}.
    """

    compiled = "zeillinger"
    invariant = "scale"
    least_axes = False
    """Whether ties go to the least axes, not to the first pair."""

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`; games are the last dimension of all tensors."""
        difference, absent = _differences(state)
        # Pairwise minima: torch reduces a short outer axis many times slower.
        low, high = reduce(torch.minimum, difference), reduce(torch.maximum, difference)
        # Above every real value for a pair with an absent point.
        spread = (high - low).masked_fill_(absent, torch.iinfo(low.dtype).max)
        extremes = torch.zeros_like(low, dtype=torch.uint8)
        for values in difference:
            extremes += (values == low).view(torch.uint8)
            extremes += (values == high).view(torch.uint8)
        key = extremes.to(torch.int32)
        if self.least_axes:
            for extreme in (low, high):
                key = key * len(difference) + _first_axis(difference, extreme)
        # At most 20 extremes, 10 * 10 axes, and 2^19 pairs: below 2^31.
        pairs = len(key)
        key = key * pairs + torch.arange(pairs, dtype=torch.int32, device=state.device)[:, None]
        best = torch.where(spread == spread.amin(0), key, 2**31 - 1).amin(0, keepdim=True) % pairs
        chosen = torch.cat([values.gather(0, best.to(torch.int64)) for values in difference])
        first, second = chosen.argmin(0), chosen.argmax(0)
        undecided = (first == second) | state.finished()
        return pair_to_action(
            first.masked_fill(undecided, 0), second.masked_fill(undecided, 1), state.dimension
        )


class ZeillingerLexHost(ZeillingerHost):
    """Choose the pair of points with the least (L, S); ties go to the least axes.

    As `ZeillingerHost`, but of all pairs with the least (L, S) it takes the one whose (first axis
    of the least entry of v, first axis of the largest entry) is lexicographically first: (0, 2)
    comes before (1, 0), although {0, 1} comes before {0, 2}.
    """

    compiled = "zeillinger_lex"
    invariant = "scale"
    least_axes = True


def _differences(state: GameState) -> tuple[list[Tensor], Tensor]:
    """Return p_i - p_j for all pairs i < j of points in list order, and which are absent.

    The differences are D integer tensors [K, N], one for each axis; the mask is bool [K, N].
    """
    points, dtype = state.points, torch.int64
    width = used_rows(state.count, points.shape[1])
    if state.device.type == "cpu" and state.num_games and int(points.max()) < 2**29:
        dtype = torch.int32  # reading a value is free here, and half the memory takes half the time
    columns = points[:, :width].permute(2, 1, 0).to(dtype, memory_format=torch.contiguous_format)
    if width < 2:
        columns = columns.expand(-1, 2, -1)
    width = columns.shape[1]
    first, second = torch.triu_indices(width, width, 1, device=state.device)
    difference = [
        column.index_select(0, first) - column.index_select(0, second) for column in columns
    ]
    return difference, second[:, None] >= state.count


def _first_axis(difference: list[Tensor], extreme: Tensor) -> Tensor:
    """Return int32 [K, N]: the first axis on which the differences are [K, N]."""
    found = torch.zeros_like(extreme, dtype=torch.int32)
    # Going down, the last axis written is the first one.
    for axis in reversed(range(len(difference))):
        found = torch.where(difference[axis] == extreme, axis, found)
    return found
