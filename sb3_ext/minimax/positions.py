"""Positions to learn from that the exact worst case of the host itself visits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import smooth_l1_loss

from resgym import functional
from resgym.game.spec import GameSpec
from resgym.players import ScoringPlayer
from resgym.solver.responses import Graph
from resgym.solver.search import Limits
from sb3_ext.callbacks.base import Period, PeriodicCallback
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.config.checks import check_count
from sb3_ext.minimax.algorithm import (
    EquivariantGraph,
    MinimaxDQN,
    observations_of,
    positions_of,
    set_costs,
    value_of_moves,
)
from sb3_ext.networks.mlp import plays_every_size

EVERY = {"updates": 200}
SHARE = 0.5
"""Part of each batch that comes from walks."""
TEMPERATURE = 0.3
"""Temperature of the softmax of values in moves, where two sets a move apart are 28 to 1."""
FULL = 256
"""Positions whose second loss counts once; that of fewer counts less, so that callbacks for several
sizes are weighed by their positions."""
CHOICE_WEIGHT = 10.0
"""Weight of the loss for the choice of sets, beside that of values."""
MOST_LOST = 6
"""Moves, at most, that a wrong choice counts as."""
LIMIT = 500_000
"""Positions after which no further ones are followed for costs."""
MEMORY = 200_000
"""Positions with costs that are kept, the newest."""
PAIRS = 0.05
"""Share of the positions of two points, which are many and easy, whose costs are learnt."""


class WorstCasePositions(PeriodicCallback):
    """Takes half of each batch from the games in which the host's best opponent holds it up.

    Every so often all answers to the present host are followed from fresh starts, as its exact
    worst case is found (`resgym.solver.responses`), and some positions of each level are kept.

    With `exact` it also makes policy iteration on the exact model, for a host that wins already.
    What each set of these positions costs is the longest game after it that the host of the target
    network allows (`set_costs`), asked once and remembered. Every update gets a second loss on such
    positions: the Huber distance of values and costs, discounted, plus ten times the moves lost on
    average, at most 6, where sets are drawn by the softmax of values / 0.3. Both are multiplied
    with `exact` / 256.

    Args:
        every: how often to walk, by default every 200 updates; with `exact` also at once.
        starts: walked from at a time, of the sizes that the environment starts with now.
        max_moves: how long games are followed; all longer ones cost this much.
        max_positions: followed from each start.
        keep: positions kept of each level.
        seed: of starts and draws.
        exact: positions of the second loss in every update; 0 for none.

    Raises:
        ValueError: a number is out of its range; in `learn`, unless the model is a `MinimaxDQN`.
    """

    remembered: ClassVar[tuple[str, ...]] = ("positions", "learnt", "costs")
    between_rollouts = True

    def __init__(
        self,
        every: Period = EVERY,
        *,
        starts: int = 40,
        max_moves: int = 60,
        max_positions: int = 600,
        keep: int = 200,
        seed: int = 0,
        exact: int = 0,
    ) -> None:
        super().__init__(every)
        self.starts = check_count("starts", starts)
        self.keep = check_count("keep", keep)
        most = check_count("max_positions", max_positions)
        self.limits = check_count("max_moves", max_moves), most
        self.seed = check_count("seed", seed, low=0)
        self.exact = check_count("exact", exact, low=0)
        self.positions: Tensor | None = None
        self.learnt = torch.empty(0)
        self.costs = torch.empty(0)

    def _on_training_start(self) -> None:
        model = self.model
        if not isinstance(model, MinimaxDQN):
            raise ValueError(f"model: need MinimaxDQN, got {type(model).__name__}")
        self._on_training_end()  # an earlier call of learn may have ended with an error
        model.batch_changes.append(self.change_batch)
        if self.exact:
            model.extra_losses.append(self.extra_loss)

    def _on_training_end(self) -> None:
        model: Any = self.model
        for hooks in (model.batch_changes, model.extra_losses):
            hooks[:] = [each for each in hooks if each not in (self.change_batch, self.extra_loss)]

    def _is_due(self) -> bool:
        # Costs are learnt from the first update on.
        return super()._is_due() or (self.exact > 0 and self.positions is None)

    def act(self) -> None:
        """Walks, and replaces the positions of the last walk."""
        model: Any = self.model
        generator = self._generator()
        game = replace(self.largest(), reposition=True)
        rows, dimension = game.max_num_points, game.dimension
        seed = int(torch.randint(2**31, (), generator=generator))
        starts = functional.starts(self.start_spec(), self.starts, seed)
        kind = EquivariantGraph if plays_every_size(model.q_net) else Graph
        graph = kind(player_of(model), game)
        kept = list[Tensor]()
        for level in graph.walk(graph.begin(starts), *self.limits):
            state = graph.positions(level)
            chosen = torch.randperm(state.num_games, generator=generator)[: self.keep]
            kept.append(observations_of(state.select(chosen), rows))
        new = torch.cat(kept)
        self.positions = new.to(model.device)
        self.logger.record("worst_case/positions", len(new))
        if self.exact:
            drawn = torch.rand(len(new), generator=generator) < PAIRS
            new = new[drawn | (new[:, min(2, rows - 1), 0] >= 0)]
            target = ScoringPlayer(
                "host", model.q_net_target, None, scale_observation=False, device=model.device
            )
            graph = kind(target, game, Limits(max_positions=LIMIT))
            costs = set_costs(graph, positions_of(new), self.limits[0])
            known = (costs > 0).all(1)
            new, costs = new[known], costs[known]
            if not len(new):
                return
            self.learnt = torch.cat([self.learnt.view(-1, rows, dimension), new])[-MEMORY:]
            self.costs = torch.cat([self.costs.view(-1, costs.shape[1]), costs])[-MEMORY:]
            self.logger.record("worst_case/cost", float(costs.amin(1).double().mean()))

    def largest(self) -> GameSpec:
        """The game, with the full sizes of its starts."""
        return self.training_env.get_attr("plan")[0].spec  # type: ignore[no-any-return]

    def start_spec(self) -> GameSpec:
        """The game, with the sizes of the starts now."""
        return self.training_env.get_attr("plan")[0].start_spec  # type: ignore[no-any-return]

    def change_batch(self, model: Any, batch: Any) -> Any:
        """The batch with the last part of its observations replaced; not one of another size."""
        known = self.positions
        if known is None or known.shape[1:] != batch.observations.shape[1:]:
            return batch
        generator = self._generator()
        observations = batch.observations.clone()
        number = round(SHARE * len(observations))
        index = torch.randint(len(known), (number,), generator=generator)
        observations[len(observations) - number :] = known[index.to(model.device)]
        return batch._replace(observations=observations)

    def extra_loss(self, model: Any) -> Tensor:
        """The loss on positions with costs, 0 before the first walk."""
        if not len(self.learnt):
            return torch.zeros((), device=model.device)
        index = torch.randint(len(self.learnt), (self.exact,), generator=self._generator())
        values = model.q_net(self.learnt[index].to(model.device))
        costs = self.costs[index].to(model.device)
        lost = (costs - costs.amin(1, keepdim=True)).clamp(max=MOST_LOST)
        choice = ((values / TEMPERATURE).softmax(1) * lost).sum(1).mean()
        values_loss = smooth_l1_loss(values, value_of_moves(costs, model.gamma))
        return self.exact / FULL * (values_loss + CHOICE_WEIGHT * choice)

    def _generator(self) -> torch.Generator:
        updates = self.model.num_updates  # type: ignore[attr-defined]
        # Only the last 32 bits of a seed count on a CPU.
        return torch.Generator().manual_seed((self.seed * 0x9E3779B1 + updates) % 2**32)
