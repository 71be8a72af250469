"""What reinforcement learning has beside it: the solver's moves in every update, goals to be held.

Both are callbacks that a file may name, as configs/taught/robust_ddqn.yml does; see docs/robust.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor

from resgym.game.spec import GameSpec
from resgym.game.state import state_from_points
from resgym.polynomials.singularities import singularity, singularity_names
from sb3_ext.attack.strength import strength
from sb3_ext.callbacks.base import Every
from sb3_ext.callbacks.rho_evaluation import RhoEvaluation, player_of
from sb3_ext.config.checks import check_count, check_number
from sb3_ext.ddqn import DDQN
from sb3_ext.networks.policy_scores import seat_of
from sb3_ext.teach.fit import model_losses
from sb3_ext.teach.solved import Solved, joined

MAX_DEPTH = 25
"""Trees with a longer branch are given up: that is no question of a move or two."""


class Teacher(BaseCallback):
    """Adds the choice loss on solved positions to every update of DDQN.

    The taught moves are best against the worst opponent. Against known opponents others may be
    better, so the weight trades proven play for exploiting the known opponents; where their
    positions differ, a network can do both. What is drawn depends on the seed and the number of the
    update alone. Logs ``teach/choice`` of the last update.

    Args:
        data: files of solved positions of the policy's seat, one or a list.
        weight: the loss is multiplied by it, above 0.
        batch_size: positions in every update, drawn with replacement.
        temperature: values are divided by it. They are numbers of moves under the reward ``step``:
            at 0.2 a best move that is a tenth of a move ahead has odds of 1.6.
        augment: rename the axes of every position at random.
        seed: of the positions and the renaming.
    """

    def __init__(
        self,
        data: str | list[str],
        weight: float = 0.1,
        *,
        batch_size: int = 128,
        temperature: float = 0.2,
        augment: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.weight = check_number("weight", weight, low=0, above=True)
        self.batch_size = check_count("batch_size", batch_size)
        self.temperature = check_number("temperature", temperature, low=0, above=True)
        self.augment, self.seed = augment, check_count("seed", seed, low=0)
        files = [data] if isinstance(data, (str, Path)) else data
        read = joined([Solved.load(Path(each)) for each in files])
        self.data = read.select(~read.held_out)
        self._last: Tensor | None = None

    def _on_training_start(self) -> None:
        model: Any = self.model
        if not isinstance(model, DDQN):
            raise TypeError(f"model: Teacher works with DDQN, got {type(model).__name__}")
        seat, points = seat_of(model)
        rows, axes = points.shape
        own, (_, most, dimension) = self.data.seat, self.data.points.shape
        if (own, dimension) != (seat, axes) or most > rows:
            raise ValueError(
                f"data: got positions of {most} points in {dimension} axes for the {own}; expected "
                f"at most {rows} in {axes} for the {seat}, as the policy has"
            )
        self._on_training_end()  # an earlier call of learn may have ended with an error
        model.extra_losses.append(self.extra_loss)

    def _on_training_end(self) -> None:
        losses = self.model.extra_losses  # type: ignore[attr-defined]
        losses[:] = [each for each in losses if each != self.extra_loss]

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self._last is not None:
            self.logger.record("teach/choice", float(self._last))

    def extra_loss(self, model: Any) -> Tensor:
        """The weighted loss of the positions of this update."""
        batch = self.data.drawn(self.batch_size, (self.seed, model.num_updates), self.augment)
        choice = model_losses(model, batch, self.temperature).choice
        self._last = choice.detach()
        return self.weight * choice


class Margins(RhoEvaluation):
    """Scores a host by the smallest of rho / goal over its opponents.

    Less 1 if one of the named singularities is deeper than allowed: a version that keeps the depths
    wins over every version that does not, as long as margins are below 2. Entries of the history
    have the ``margin`` besides, and ``deeper``: moves above the least depth by singularity, None
    for a tree with a branch of more than `MAX_DEPTH` moves. In other than three axes the margin
    alone counts.

    Args:
        targets: rho to be reached, by opponent, above 0.
        every: when to evaluate.
        deeper: moves above the least depth that are allowed.
        average: what is measured and kept are the online network's weights averaged over time: at
            every parallel step this part of the average stays, 0..1 (a tenth less than all of it at
            first, so that it does not begin with the untrained network); 0: the network as it is.
            Training knows nothing of the average.
        arguments: of `RhoEvaluation`, without ``best``.
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
        for name, target in targets.items():
            check_number(f"targets: {name}", target, low=0, above=True)
        super().__init__(list(targets), every, **arguments)
        self.targets, self.deeper = dict(targets), check_count("deeper", deeper, low=0)
        self.average = check_number("average", average, low=0, high=1)
        self._averaged: dict[str, Tensor] = {}
        self._steps = 0
        self._found: dict[str, Any] = {}

    def _on_training_start(self) -> None:
        if seat_of(self.model)[0] != "host":
            raise ValueError("targets: got those of an agent; expected a host's")
        super()._on_training_start()

    def _online(self) -> dict[str, Tensor]:
        q_net: Any = self.model.policy.q_net
        return {name: weights.data for name, weights in q_net.named_parameters()}

    def _on_step(self) -> bool:
        if self.average:
            online = self._online()
            self._averaged = self._averaged or {name: w.clone() for name, w in online.items()}
            self._steps += 1
            stays = min(self.average, (1 + self._steps) / (10 + self._steps))
            for name, weights in self._averaged.items():
                weights.lerp_(online[name], 1.0 - stays)
        return super()._on_step()

    def evaluate(self) -> dict[str, float]:
        """Evaluates now, with the averaged weights if there are any; returns rho by opponent."""
        online = self._online()
        kept = {name: weights.clone() for name, weights in online.items()}
        try:
            for name, weights in self._averaged.items():
                online[name].copy_(weights)
            return super().evaluate()
        finally:
            for name, weights in kept.items():
                online[name].copy_(weights)

    def _score(self, results: dict[str, float]) -> float:
        margin = min(results[name] / target for name, target in self.targets.items())
        deeper = _deeper(player_of(self.model)) if self._game["dimension"] == 3 else {}
        self._found = {"deeper": deeper, "margin": margin}
        kept = all(moves is not None and moves <= self.deeper for moves in deeper.values())
        return margin if kept else margin - 1.0

    def _details(self) -> dict[str, Any]:
        return self._found

    def state_dict(self) -> dict[str, Any]:
        """That of `RhoEvaluation`, and the average."""
        return {**super().state_dict(), "averaged": self._averaged, "steps": self._steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on with what `state_dict` gave."""
        super().load_state_dict(state)
        self._averaged = {name: weights.clone() for name, weights in state["averaged"].items()}
        self._steps = int(state["steps"])


def _deeper(host: Any) -> dict[str, int | None]:
    """Moves above the least depth in the worst case, by singularity."""
    spec, names = GameSpec(3), singularity_names()
    starts = state_from_points([singularity(name) for name in names], spec)
    found = strength(host, starts, spec, MAX_DEPTH, 100_000)
    known = ~found.open & (found.moves <= MAX_DEPTH)
    more = zip(names, (found.moves - found.least).tolist(), known.tolist(), strict=True)
    return {name: moves if good else None for name, moves, good in more}
