"""Which version of a host is kept when it has to hold against several opponents at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sb3_ext.callbacks.rho_evaluation import RhoEvaluation, player_of, role_of
from sb3_ext.config.checks import check_count, check_number
from sb3_ext.schedules.frequency import Every
from sb3_ext.studies.teach.measures import singularity_depths

MAX_DEPTH = 25
"""Trees with a longer branch are given up: that is no question of a move or two."""


def worst_margin(rho: Mapping[str, float], targets: Mapping[str, float]) -> float:
    """The smallest of rho / target over the opponents of ``targets``; 1 reaches all of them."""
    return min(rho[name] / target for name, target in targets.items())


class RobustEvaluation(RhoEvaluation):
    """Scores a host by its worst margin, and by the depth of the singularities.

    The score is `worst_margin`, less 1 if a singularity is deeper than allowed: a version that
    keeps the depths wins over every version that does not, as long as margins are below 2. Entries
    of the history have the ``margin`` besides and ``deeper``: moves above the least depth by
    singularity, None for a tree with a branch of more than `MAX_DEPTH` moves.

    Singularities have three axes; with another number of them only the margin counts.
    """

    def __init__(
        self,
        targets: Mapping[str, float],
        every: Every | Mapping[str, Any],
        *,
        deeper: int = 1,
        average: float = 0.0,
        **arguments: Any,
    ) -> None:
        """Prepares the evaluation.

        Args:
            targets: rho to be reached, by opponent, above 0.
            every: when to evaluate.
            deeper: moves above the least depth that are allowed.
            average: what is measured and kept are the online network's weights averaged over time:
                at every parallel step this part of the average stays, 0..1 (a tenth less than all
                of it at first, so that it does not begin with the untrained network). 0 measures
                the network as it is. Training knows nothing of the average.
            **arguments: of `RhoEvaluation`, without ``best``.

        Raises:
            TypeError, ValueError: a target or ``deeper`` is out of its range.
        """
        for name, target in targets.items():
            check_number(f"targets: {name}", target, low=0, above=True)
        super().__init__(list(targets), every, **arguments)
        self.targets = dict(targets)
        self.deeper = check_count("deeper", deeper, low=0)
        self.average = check_number("average", average, low=0, high=1)
        self._averaged: list[Tensor] = []
        self._steps = 0
        self._found: dict[str, Any] = {}

    def _on_training_start(self) -> None:
        if role_of(self.model.observation_space) != "host":
            raise ValueError("targets: are those of a host, the model is an agent")
        super()._on_training_start()

    def _on_step(self) -> bool:
        if self.average:
            online = self._online()
            if not self._averaged:
                self._averaged = [weights.clone() for weights in online]
            self._steps += 1
            stays = min(self.average, (1 + self._steps) / (10 + self._steps))
            torch._foreach_lerp_(self._averaged, online, 1.0 - stays)
        return super()._on_step()

    def _online(self) -> list[Tensor]:
        weights = self.model.policy.q_net.parameters()  # type: ignore[union-attr, operator]
        return [each.data for each in weights]

    def evaluate(self) -> dict[str, float]:
        """Evaluates now, with the averaged weights if there are any; returns rho by opponent."""
        if not self._averaged:
            return super().evaluate()
        online = self._online()
        kept = [weights.clone() for weights in online]
        torch._foreach_copy_(online, self._averaged)
        try:
            return super().evaluate()
        finally:
            torch._foreach_copy_(online, kept)

    def state_dict(self) -> dict[str, Any]:
        """That of `RhoEvaluation`, and the average."""
        averaged = {str(number): weights for number, weights in enumerate(self._averaged)}
        return {**super().state_dict(), "averaged": averaged, "steps": self._steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on with what `state_dict` gave."""
        super().load_state_dict(state)
        saved = state["averaged"]
        self._averaged = [saved[str(number)].clone() for number in range(len(saved))]
        self._steps = int(state["steps"])

    def _score(self, results: dict[str, float]) -> float:
        margin = worst_margin(results, self.targets)
        deeper: dict[str, int | None] = {}
        if self._game["dimension"] == 3:
            found = singularity_depths(player_of(self.model), MAX_DEPTH)
            deeper = {
                name: None if row["depth"] is None else row["depth"] - row["least_depth"]
                for name, row in found.items()
            }
        self._found = {"deeper": deeper, "margin": margin}
        kept = all(moves is not None and moves <= self.deeper for moves in deeper.values())
        return margin if kept else margin - 1.0

    def _details(self) -> dict[str, Any]:
        return self._found
