"""A player that takes the action with the best score: how a trained network plays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from resgym.game.rng import RowRandom
from resgym.game.rules import observe_points
from resgym.game.spec import Role
from resgym.game.state import GameState
from resgym.players.base import given_sets


class ScoringPlayer:
    """Play the legal action with the highest score, the first one on ties."""

    def __init__(
        self,
        role: Role,
        score: Callable[[Any], Tensor],
        points_shape: tuple[int, int],
        *,
        scale_observation: bool = True,
        device: torch.device | str = "cpu",
        name: str = "policy",
    ) -> None:
        """Wrap a function of observations.

        Args:
            role: ``host`` or ``agent``.
            score: maps an observation of the environments to scores [N, A]; higher is better.
            points_shape: the (P, D) of the function's observations. Positions with another number
                of rows are padded or cut to it if their points fit.
            scale_observation: as in the environments.
            device: device of the function.
            name: name in tables.
        """
        self.role = role
        self.name = name
        self._score = score
        self._shape = points_shape
        self._scale = scale_observation
        self._device = torch.device(device)

    def act(self, state: GameState, coords: Tensor | None, rng: RowRandom) -> Tensor:
        """See `Player.act`; raises ValueError if positions are too large or have other axes."""
        seen: Any = self._fit(observe_points(state, self._scale)).to(self._device)
        if self.role == "host":
            legal = state.legal_sets()
        else:
            legal = given_sets(coords)
            seen = {"coords": legal.to(self._device, torch.int8), "points": seen}
        with torch.no_grad():
            scores = self.scores(seen).to(state.device)
            return (scores if legal is None else scores.where(legal, -torch.inf)).argmax(1)

    def scores(self, observation: Any) -> Tensor:
        """Return the function's scores of an observation, [N, A]."""
        return self._score(observation)

    def _fit(self, points: Tensor) -> Tensor:
        rows, dimension = points.shape[1:]
        if dimension != self._shape[1]:
            raise ValueError(
                f"{self.name} plays games of dimension {self._shape[1]}, got dimension {dimension}"
            )
        if rows > self._shape[0] and (points[:, self._shape[0] :] >= 0).any():
            raise ValueError(
                f"{self.name} plays positions of at most {self._shape[0]} points, got more"
            )
        missing = self._shape[0] - rows  # where it is negative, rows are cut off
        return torch.nn.functional.pad(points, (0, 0, 0, missing), value=-1.0)
