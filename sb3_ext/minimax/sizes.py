"""Games of another size to learn from, beside those of the environment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from resgym import functional
from resgym.game.rng import RowRandom, derive_seed
from resgym.game.spec import GameSpec, host_action_table
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.config.checks import check_count, check_number
from sb3_ext.minimax.algorithm import observations_of
from sb3_ext.minimax.positions import WorstCasePositions


class OtherSize(WorstCasePositions):
    """Makes some updates of a network for every size on games of another size.

    With one such callback for each further size, `MinimaxDQN` learns a mixture of sizes. It makes
    whole batches: half of them from its own `WorstCasePositions`, the others from games of the
    host with 10 % random sets against random answers. Its starts grow in step with those of the
    environment, see `GrowingStarts`.

    Args:
        dimension: number of axes of its games, 2 to 10.
        max_num_points: number of points of its starts.
        max_value: largest coordinate of its starts.
        part: share of the updates, above 0, at most 1. Where several callbacks draw the same
            update, the last one of the list makes its batch.
        rows: number of positions in its batches.
        games: number of games that it plays each time.
        **walks: arguments of `WorstCasePositions`. Losses on `exact` positions are added in every
            update.
    """

    remembered = (*WorstCasePositions.remembered, "played")

    def __init__(
        self,
        dimension: int,
        max_num_points: int,
        max_value: int,
        *,
        part: float = 0.5,
        rows: int = 128,
        games: int = 512,
        **walks: Any,
    ) -> None:
        super().__init__(**walks)
        # Else all would draw the same updates.
        self.seed = derive_seed(self.seed, dimension, max_num_points, max_value)
        self.spec = GameSpec(dimension, max_num_points, max_value=max_value, reposition=True)
        self.part = check_number("part", part, low=0, high=1, above=True)
        self.rows = check_count("rows", rows)
        self.games = check_count("games", games)
        self.played: Tensor | None = None

    def largest(self) -> GameSpec:
        """The game of this size."""
        return self.spec

    def start_spec(self) -> GameSpec:
        """The game, with starts as large a part of the full size as those of the environment."""
        now, full, own = super().start_spec(), super().largest(), self.spec
        points = max(2, round(own.max_num_points * now.max_num_points / full.max_num_points))
        value = max(1, round(own.max_value * now.max_value / full.max_value))
        return replace(own, max_num_points=points, max_value=value)

    def act(self) -> None:
        """Walks, plays, and replaces the positions of the last time."""
        super().act()
        model: Any = self.model
        generator = self._generator()
        host = player_of(model)
        table = host_action_table(self.spec.dimension)
        seed = int(torch.randint(2**31, (), generator=generator))
        state = functional.starts(self.start_spec(), self.games, seed)
        kept = list[Tensor]()
        for _ in range(self.limits[0]):
            if not state.num_games:
                break
            kept.append(observations_of(state, self.spec.max_num_points))
            action = host.act(state, None, RowRandom(torch.zeros(state.num_games).long()))
            other = torch.randint(len(table), action.shape, generator=generator)
            explores = torch.rand(action.shape, generator=generator) < model.exploration_rate
            coords = table[torch.where(explores, other, action)]
            axis = torch.rand(coords.shape, generator=generator).where(coords, -1.0).argmax(1)
            state, overflow = functional.move(state, coords, axis, self.spec)
            state = state.select(~(overflow | state.finished()))
        self.played = torch.cat(kept).to(model.device)

    def change_batch(self, model: Any, batch: Any) -> Any:
        """The batch, or one of this size in its place."""
        generator = self._generator()
        if self.played is None or float(torch.rand((), generator=generator)) >= self.part:
            return batch
        index = torch.randint(len(self.played), (self.rows,), generator=generator)
        observations = self.played[index.to(model.device)]
        return super().change_batch(model, batch._replace(observations=observations))
