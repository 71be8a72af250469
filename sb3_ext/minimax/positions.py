"""Positions to learn from that the exact worst case of the host itself visits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from resgym import functional
from resgym.game.spec import GameSpec
from resgym.game.state import GameState
from resgym.measure.worst_case import worst_case_moves
from sb3_ext.callbacks import CALLBACKS
from sb3_ext.callbacks.base import Every, PeriodicCallback
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.config.checks import check_count, check_number
from sb3_ext.minimax.algorithm import MinimaxDQN


@CALLBACKS.register("worst_case_positions")
class WorstCasePositions(PeriodicCallback):
    """Takes a part of each batch from the games in which the host's best opponent holds it up.

    Every so often all answers to the present host are followed from fresh starts, as its exact
    worst case is found (`resgym.measure.worst_case`), and some positions of each level are kept.

    Args:
        every: how often to walk.
        share: part of each batch, above 0, below 1.
        starts: walked from at a time, of the sizes that the environment starts with now.
        max_moves: how long games are followed.
        max_positions: followed from each start.
        keep: positions kept of each level.
        seed: of starts and draws.
    """

    remembered: ClassVar[tuple[str, ...]] = ("positions",)
    between_rollouts = True

    def __init__(
        self,
        every: Every | Mapping[str, Any],
        *,
        share: float = 0.5,
        starts: int = 40,
        max_moves: int = 60,
        max_positions: int = 600,
        keep: int = 200,
        seed: int = 0,
    ) -> None:
        super().__init__(every)
        self.share = check_number("share", share, low=0, high=1, above=True)
        self.starts, self.keep = check_count("starts", starts), check_count("keep", keep)
        self.limits = (
            check_count("max_moves", max_moves),
            check_count("max_positions", max_positions),
        )
        self.seed = check_count("seed", seed, low=0)
        self.positions: Tensor | None = None

    def _on_training_start(self) -> None:
        model: Any = self.model
        if not isinstance(model, MinimaxDQN):
            raise TypeError(f"model: need MinimaxDQN, got {type(model).__name__}")
        self._on_training_end()  # an earlier call of learn may have ended with an error
        model.batch_changes.append(self.change_batch)

    def _on_training_end(self) -> None:
        changes = self.model.batch_changes  # type: ignore[attr-defined]
        changes[:] = [each for each in changes if each != self.change_batch]

    def act(self) -> None:
        """Walks, and replaces the positions of the last walk."""
        model: Any = self.model
        generator = self._generator()
        spec: GameSpec = self.training_env.get_attr("plan")[0].start_spec
        rows, dimension = model.observation_space.shape
        game = GameSpec(dimension=dimension, max_num_points=rows, reposition=True)
        seed = int(torch.randint(2**31, (), generator=generator))
        starts = functional.starts(spec, self.starts, seed)
        kept: list[Tensor] = []

        def visit(state: GameState) -> None:
            chosen = torch.randperm(state.num_games, generator=generator)[: self.keep]
            seen = functional.observe(state.select(chosen), scale=False)
            kept.append(torch.nn.functional.pad(seen, (0, 0, 0, rows - seen.shape[1]), value=-1.0))

        worst_case_moves(player_of(model), starts, game, *self.limits, visit)
        self.positions = torch.cat(kept).to(model.device)
        self.logger.record("worst_case/positions", len(self.positions))

    def change_batch(self, model: Any, batch: Any) -> Any:
        """The batch with the last part of its observations replaced."""
        if self.positions is None:
            return batch
        generator, observations = self._generator(), batch.observations.clone()
        number = round(self.share * len(observations))
        index = torch.randint(len(self.positions), (number,), generator=generator)
        observations[len(observations) - number :] = self.positions[index.to(model.device)]
        return batch._replace(observations=observations)

    def _generator(self) -> torch.Generator:
        updates = self.model.num_updates  # type: ignore[attr-defined]
        return torch.Generator().manual_seed((self.seed << 32) + updates)
