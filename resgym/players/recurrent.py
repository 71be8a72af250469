"""A player with memory: how a trained recurrent network plays."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from resgym.game.actions import host_action_table
from resgym.game.rng import RowRandom
from resgym.game.state import GameState
from resgym.players.base import given_sets
from resgym.players.scoring import ScoringPlayer

RecurrentScore = Callable[[Any, "Tensor | None", Tensor], "tuple[Tensor, Tensor]"]


@dataclass
class _Memory:
    """The memory of N rows: last position and move, and the network's state."""

    points: Tensor
    sets: Tensor
    axis: Tensor
    network: Tensor


class RecurrentPlayer(ScoringPlayer):
    """Play the legal action with the highest score, which depends on the moves before.

    A player is not told when a game begins. A row keeps its memory while its position can follow
    from the position and move before; otherwise the memory is cleared. So it works with every
    restart of environments and measures. Rows that are selected from a batch (`select`) keep
    their memory.

    Args:
        role: as in `ScoringPlayer`; the arguments after ``score`` too.
        score: maps an observation, the memory [N, M] (None at first) and bool [N], the rows that
            begin without memory, to scores [N, A] and the new memory [N, M].
    """

    remembers = True
    """The player has a memory, so a single position does not determine its move."""

    def __init__(self, role: Any, score: RecurrentScore, *args: Any, **kwargs: Any) -> None:
        super().__init__(role, lambda _: torch.empty(0), *args, **kwargs)
        self._network = score
        self._kept: list[_Memory] = []  # one or none, shared by the players of some of the rows
        self._index: Tensor | None = None
        self._begins = self._new = torch.empty(0)

    def select(self, index: Tensor) -> RecurrentPlayer:
        """Return the player of the rows ``index`` (int64 or bool [N]); both share the memory.

        Before the first move, and for rows that it has not seen, it has no memory.
        """
        index = index.nonzero()[:, 0] if index.dtype == torch.bool else index
        chosen = copy.copy(self)
        own = self._own_rows()
        if own is None or (len(index) and int(index.max()) >= len(own)):
            chosen._kept, chosen._index = [], None
        else:
            chosen._index = own[index]
        return chosen

    def _own_rows(self) -> Tensor | None:
        if self._index is None and self._kept:
            return torch.arange(len(self._kept[0].axis), device=self._kept[0].axis.device)
        return self._index

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`; the answers depend on the earlier moves of the rows."""
        own, shape = self._own_rows(), state.points.shape
        known = own is not None and len(own) == len(state.count)
        if not (known and self._kept[0].points.shape[1:] == shape[1:]):
            self._kept, self._index, own = [], None, None
        self._begins = torch.ones_like(state.count, dtype=torch.bool)
        if self._kept:
            kept = self._kept[0]
            self._begins = ~_follows(kept.points[own], kept.sets[own], kept.axis[own], state)
        answer = super().act(state, coords, rng)
        if self.role == "host":
            sets = host_action_table(shape[2], state.device)[answer]
            axis = torch.full_like(answer, -1)
        else:
            sets, axis = given_sets(coords), answer
        now = _Memory(state.points, sets, axis, self._new)
        if own is None:
            self._kept = [now]
        else:
            for name, values in vars(now).items():
                before = getattr(self._kept[0], name)
                after = before.index_copy(0, own.to(before.device), values)
                setattr(self._kept[0], name, after)
        return answer

    def scores(self, observation: Any) -> Tensor:
        """Score as `ScoringPlayer` does, with the memory of the rows, and update the memory."""
        memory, own = None, self._own_rows()
        if self._kept and own is not None:
            memory = self._kept[0].network[own.to(self._device)]
        scores, self._new = self._network(observation, memory, self._begins.to(self._device))
        return scores


def _follows(points: Tensor, sets: Tensor, axis: Tensor, state: GameState) -> Tensor:
    """Return bool [N]: every point of a position can come from the last move.

    ``points`` int64 [N, P, D] is the position, bool ``sets`` [N, D] the host's set of the last
    move, ``axis`` int64 [N] the agent's answer, or -1 if unknown. Shifts are ignored, so this
    works for repositioned games too.
    """
    now, found = _shifted(state.points), torch.zeros_like(axis, dtype=torch.bool)
    total = (points * sets[:, None]).sum(2)
    for each in range(points.shape[2]):
        moved = points.clone()
        moved[:, :, each] = total
        moved = _shifted(torch.where(points < 0, -1, moved))
        same = (now[:, :, None] == moved[:, None]).all(3).any(2) | (now[:, :, 0] < 0)
        found |= same.all(1) & sets[:, each] & ((axis == each) | (axis < 0))
    return found


def _shifted(points: Tensor) -> Tensor:
    """Shift the points so that the least coordinate of every axis is 0; absent rows stay -1."""
    absent = points < 0
    lowest = points.masked_fill(absent, 2**62).amin(1, keepdim=True)
    return torch.where(absent, -1, points - lowest)
