"""Players that take the action with the best score: how trained networks play."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import torch
from torch import Tensor

from resgym.game.rng import RowRandom
from resgym.game.rules import observe_points
from resgym.game.spec import Role
from resgym.game.state import GameState
from resgym.players.registry import given_sets
from resgym.texts import shown


@dataclass(eq=False, repr=False)
class ScoringPlayer:
    """Play the legal action with the highest score, the first one on ties.

    Attributes:
        role: ``host`` or ``agent``.
        score: maps an observation of the environments to scores [N, A]; higher is better.
        points_shape: the (P, D) of the function's observations, None for every size. Positions with
            another number of rows are padded or cut to it if their points fit.
        scale_observation: as in the environments.
        device: device of the function.
        name: name in tables.
    """

    role: Role
    score: Callable[..., Any]
    points_shape: tuple[int, int] | None
    _: KW_ONLY
    scale_observation: bool = True
    device: torch.device | str = "cpu"
    name: str = "policy"

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`; raises ValueError if positions are too large or have other axes."""
        seen: Any = self._fit(observe_points(state, self.scale_observation)).to(self.device)
        rows, axes = seen.shape[1:]
        if self.role == "host":
            legal = state.legal_sets()
        else:
            legal = given_sets(coords)
            seen = {"coords": legal.to(self.device, torch.int8), "points": seen}
        with torch.no_grad():
            try:
                scores = self.scores(seen)
            except RuntimeError as error:
                raise ValueError(
                    f"{self.name} cannot score points [N, {rows}, {axes}]: {error}"
                ) from error
            if not isinstance(scores, Tensor) or scores.ndim != 2:
                raise TypeError(f"{self.name} must return scores [N, A], got {shown(scores)}")
            scores = scores.to(state.device)
            return (scores if legal is None else scores.where(legal, -torch.inf)).argmax(1)

    def scores(self, observation: Any) -> Tensor:
        """Return the function's scores of an observation, [N, A]."""
        return self.score(observation)

    def _fit(self, points: Tensor) -> Tensor:
        if self.points_shape is None:
            return points
        rows, dimension = points.shape[1:]
        most, own = self.points_shape
        if dimension != own:
            raise ValueError(
                f"{self.name} plays games of dimension {own}, got dimension {dimension}"
            )
        if rows > most and (points[:, most:] >= 0).any():
            raise ValueError(f"{self.name} plays positions of at most {most} points, got more")
        # Where it is negative, rows are cut off.
        return torch.nn.functional.pad(points, (0, 0, 0, most - rows), value=-1.0)


class ModulePlayer(ScoringPlayer):
    """The player of a torch module of the caller's, whose best scores must be finite."""

    def scores(self, observation: Any) -> Tensor:
        """As in `ScoringPlayer`; raises ValueError if the best one is NaN or infinite."""
        scores = super().scores(observation)
        if isinstance(scores, Tensor) and not scores.amax(-1).isfinite().all():
            raise ValueError(f"{self.name} must return finite scores, got NaN or infinite ones")
        return scores


@dataclass
class _Batch:
    """What N rows remember, [N, M], and which of them begin a game with their next answer."""

    begins: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.bool))
    memory: Tensor | None = None


@dataclass(eq=False, repr=False)
class RecurrentPlayer(ScoringPlayer):
    """Play the legal action with the highest score, which depends on the moves before.

    The code that plays games marks where they begin (`begin`); before that its first answers do.
    Rows that are taken out of a batch (`select`) continue where they are, and answer for it.

    Attributes:
        score: maps an observation, the memory [N, M] (None at first) and bool [N], the rows that
            begin without memory, to scores [N, A] and the new memory [N, M].

    The other attributes are those of `ScoringPlayer`.
    """

    _batch: _Batch = field(default_factory=_Batch, init=False)
    _rows: Tensor | None = field(default=None, init=False)

    remembers = True
    """The player has a memory, so a single position does not determine its move."""

    def begin(self, rows: Tensor) -> None:
        """A game begins in these rows, bool [N], of its batch of N."""
        batch = self._batch
        batch.begins = rows.to(self.device, copy=True)
        if batch.memory is not None and len(batch.memory) != len(rows):
            batch.memory = None

    def select(self, index: Tensor) -> RecurrentPlayer:
        """The player of the rows ``index`` (int64 or bool [N])."""
        chosen, index = copy.copy(self), index.to(self.device)
        every = torch.arange(len(self._batch.begins), device=self.device)
        chosen._rows = (every if self._rows is None else self._rows)[index]
        return chosen

    def scores(self, observation: Any) -> Tensor:
        """As in `ScoringPlayer`, with what the rows remember; they remember this one too."""
        points = observation if self.role == "host" else observation["points"]
        batch, rows = self._batch, self._rows
        if rows is None:
            if len(batch.begins) != len(points):
                self.begin(torch.ones(len(points), dtype=torch.bool))
            rows = torch.arange(len(points), device=self.device)
        memory = None if batch.memory is None else batch.memory[rows]
        scores, new = self.score(observation, memory, batch.begins[rows])
        if batch.memory is None:
            batch.memory = new.new_zeros(len(batch.begins), new.shape[1])
        batch.memory = batch.memory.index_copy(0, rows, new)
        batch.begins[rows] = False
        return scores
