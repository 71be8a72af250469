"""Zeillinger's host, with two rules for ties.

D. Zeillinger, "A short solution to Hironaka's polyhedra game", Enseign. Math. 52 (2006). For two
points p, q let v = p - q, L = max v - min v, and S the number of axes where v is max v plus the
number where it is min v. Take the v of least (L, S) and choose an axis of its largest and one of
its smallest entry. Then (L, S) falls or a point disappears, whatever the agent answers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from resgym.game.actions import pair_to_action
from resgym.game.rng import RowRandom
from resgym.game.state import GameState
from resgym.players.base import ScriptedHost


class ZeillingerHost(ScriptedHost):
    """Choose the pair of points with the least (L, S), the first in list order.

    Points are in descending lexicographic order, pairs (i, j), i < j, in the order (0, 1), (0, 2),
    ..., (1, 2), ...; v = p_i - p_j, and the set is the first axis of the least entry of v with the
    first axis of the largest. If all entries of v are equal the set is {0, 1}.
    """

    rules = ("basic", "thom")
    compiled = "zeillinger"
    invariant = "scale"
    reads_order = True

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        pairs = _Pairs(state)
        num_pairs = pairs.spread.shape[0]
        order = torch.arange(num_pairs, dtype=torch.int32, device=state.device)[:, None]
        best = (pairs.least(pairs.extremes * num_pairs + order) % num_pairs).to(torch.int64)
        chosen = torch.stack([values.gather(0, best[None])[0] for values in pairs.difference], 1)
        return _action(chosen.argmin(1), chosen.argmax(1), state)


class ZeillingerLexHost(ScriptedHost):
    """Choose the pair of points with the least (L, S); ties go to the least axes.

    As `ZeillingerHost`, but of all pairs with the least (L, S) it takes the one whose (first axis
    of the least entry of v, first axis of the largest entry) is lexicographically first: (0, 2)
    comes before (1, 0), although {0, 1} comes before {0, 2}.
    """

    rules = ("basic", "thom")
    compiled = "zeillinger_lex"
    invariant = "scale"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`."""
        pairs = _Pairs(state)
        dimension = len(pairs.difference)
        first_low, first_high = pairs.first(pairs.low), pairs.first(pairs.high)
        key = pairs.least((pairs.extremes * dimension + first_low) * dimension + first_high)
        axes = (key % dimension**2).to(torch.int64)
        return _action(axes // dimension, axes % dimension, state)


class _Pairs:
    """All pairs i < j of the points of N games in list order; games are the last dimension.

    Attributes:
        difference: D integer tensors [K, N], the axes of p_i - p_j for K pairs.
        low: [K, N], the least entry of the difference.
        high: [K, N], the largest.
        spread: [K, N], L = high - low; above every real value for a pair with an absent point.
        extremes: int32 [K, N], S.
    """

    def __init__(self, state: GameState) -> None:
        width, dtype = state.points.shape[1], torch.int64
        points = state.points
        if state.device.type == "cpu" and state.num_games:
            # Reading a value is free here. Most rows of most positions are absent, and most
            # coordinates are small: half the memory takes half the time.
            width = int(state.count.max())
            dtype = torch.int32 if int(points.max()) < 2**29 else torch.int64
        columns = (
            points[:, :width].permute(2, 1, 0).to(dtype, memory_format=torch.contiguous_format)
        )
        if width < 2:
            columns = columns.expand(-1, 2, -1)
        width = columns.shape[1]
        first, second = torch.triu_indices(width, width, 1, device=state.device)
        self.difference = [
            column.index_select(0, first) - column.index_select(0, second) for column in columns
        ]
        # Pairwise minima: torch reduces a short outer axis many times slower.
        self.low = self.high = self.difference[0]
        for values in self.difference[1:]:
            self.low = torch.minimum(self.low, values)
            self.high = torch.maximum(self.high, values)
        absent = second[:, None] >= state.count
        self.spread = (self.high - self.low).masked_fill_(absent, torch.iinfo(dtype).max)
        extremes = torch.zeros_like(self.low, dtype=torch.uint8)
        for values in self.difference:
            extremes += (values == self.low).view(torch.uint8)
            extremes += (values == self.high).view(torch.uint8)
        self.extremes = extremes.to(torch.int32)

    def first(self, extreme: Tensor) -> Tensor:
        """Return int32 [K, N]: the first axis on which the differences are [K, N]."""
        found = torch.zeros_like(self.extremes)
        # Going down, the last axis written is the first one.
        for axis in range(len(self.difference) - 1, 0, -1):
            found = torch.where(self.difference[axis] == extreme, axis, found)
        return found * (self.difference[0] != extreme)

    def least(self, key: Tensor) -> Tensor:
        """Return the least key int32 [N] of the pairs of least spread, for keys int32 [K, N]."""
        return torch.where(self.spread == self.spread.amin(0), key, 2**31 - 1).amin(0)


def _action(first: Tensor, second: Tensor, state: GameState) -> Tensor:
    """Return the actions of axis pairs int64 [N]; {0, 1} for equal axes and in finished games."""
    undecided = (first == second) | state.finished()
    return pair_to_action(
        first.masked_fill(undecided, 0), second.masked_fill(undecided, 1), state.points.shape[2]
    )
