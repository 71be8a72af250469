"""A player with memory: how a trained recurrent network plays."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from resgym.players.scoring import ScoringPlayer

RecurrentScore = Callable[[Any, "Tensor | None", Tensor], "tuple[Tensor, Tensor]"]


@dataclass
class _Batch:
    """What N rows remember, [N, M], and which of them begin a game with their next answer."""

    begins: Tensor
    memory: Tensor | None = None


class RecurrentPlayer(ScoringPlayer):
    """Play the legal action with the highest score, which depends on the moves before.

    The code that plays games marks where they begin (`begin`); before that its first answers do.
    Rows that are taken out of a batch (`select`) continue where they are, and answer for it.

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
        self._batch = _Batch(torch.empty(0, dtype=torch.bool))
        self._rows: Tensor | None = None

    def begin(self, rows: Tensor) -> None:
        """A game begins in these rows, bool [N], of its batch of N."""
        batch = self._batch
        batch.begins = rows.to(self._device, copy=True)
        if batch.memory is not None and len(batch.memory) != len(rows):
            batch.memory = None

    def select(self, index: Tensor) -> RecurrentPlayer:
        """The player of the rows ``index`` (int64 or bool [N])."""
        chosen, index = copy.copy(self), index.to(self._device)
        every = torch.arange(len(self._batch.begins), device=self._device)
        chosen._rows = (every if self._rows is None else self._rows)[index]
        return chosen

    def scores(self, observation: Any) -> Tensor:
        """As in `ScoringPlayer`, with what the rows remember; they remember this one too."""
        points = observation if self.role == "host" else observation["points"]
        batch, rows = self._batch, self._rows
        if rows is None:
            if len(batch.begins) != len(points):
                self.begin(torch.ones(len(points), dtype=torch.bool))
            rows = torch.arange(len(points), device=self._device)
        memory = None if batch.memory is None else batch.memory[rows]
        scores, new = self._network(observation, memory, batch.begins[rows])
        if batch.memory is None:
            batch.memory = new.new_zeros(len(batch.begins), new.shape[1])
        batch.memory = batch.memory.index_copy(0, rows, new)
        batch.begins[rows] = False
        return scores
