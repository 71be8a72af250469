"""Callbacks for reinforcement learning: the solver's moves in every update, and goals.

Files can name both, as configs/taught/robust_ddqn.yml does; see docs/teaching.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor
from torch.nn.functional import huber_loss

from resgym import singularity_names
from resgym.benchmark import Solved
from resgym.benchmark.solved import Asked
from resgym.measure.exploitability import exploitability
from sb3_ext.adapter.seam import to_device
from sb3_ext.callbacks.base import Every
from sb3_ext.callbacks.evaluation import RhoEvaluation, player_of
from sb3_ext.config.checks import check_number
from sb3_ext.minimax.algorithm import observations_of, value_of_moves
from sb3_ext.networks.mlp import seat_of
from sb3_ext.teach.positions import singularities

MAX_DEPTH = 25
"""Trees with a longer branch are given up: they miss by more than a move or two."""
DEEPER = 1
"""Moves above the least depth that are allowed."""


class Teacher(BaseCallback):
    """Add the choice loss on solved positions to every update of DDQN.

    The taught moves are best against the worst opponent. Against known opponents others may be
    better, so the weight trades proven play for exploiting the known opponents; where their
    positions differ, a network can do both. What is drawn depends on the seed and the number of the
    update alone. Logs ``teach/choice`` of the last update.

    Args:
        data: a file of solved positions, for an agent with the costs of all moves.
        weight: weight of the loss.
        batch_size: positions in every update, drawn with replacement, the axes renamed at random.
        temperature: values are divided by it. They are numbers of moves under the reward ``step``:
            at 0.2 a best move that is a tenth of a move ahead has odds of 1.6.
        seed: seed of the positions and the renaming.
    """

    def __init__(
        self,
        data: str,
        weight: float = 0.1,
        *,
        batch_size: int = 128,
        temperature: float = 0.2,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.weight, self.batch_size, self.seed = weight, batch_size, seed
        self.temperature = temperature
        read = Solved.load(Path(data))
        self.data = read.select(read.split > 0)
        self._last: Tensor | None = None

    def _on_training_start(self) -> None:
        model: Any = self.model
        seat, points = seat_of(model)
        (rows, axes), (_, most, dimension) = points.shape, self.data.points.shape
        if dimension != axes or most > rows:
            raise ValueError(
                f"data: got positions of {most} points in {dimension} axes; expected at most "
                f"{rows} in {axes}, as the policy has"
            )
        self.data.asked(seat)  # which is refused if they were solved for the other one
        if self.extra_loss not in model.extra_losses:  # left by a call that ended with an error
            model.extra_losses.append(self.extra_loss)

    def _on_training_end(self) -> None:
        model: Any = self.model
        model.extra_losses.remove(self.extra_loss)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self._last is not None:
            self.logger.record("teach/choice", float(self._last))

    def extra_loss(self, model: Any) -> Tensor:
        """The weighted loss of the positions of this update."""
        seat, _ = seat_of(model)
        batch = self.data.drawn(self.batch_size, (self.seed, model.num_updates), seat)
        choice = model_losses(model, batch, self.temperature).choice
        self._last = choice.detach()
        return self.weight * choice


class Margins(RhoEvaluation):
    """Score a host by its margin, the smallest rho / goal over its opponents.

    Less 1 if one of the named singularities is more than `DEEPER` moves too deep: a version that
    keeps the depths wins over every version that does not, as long as margins are below 2. Entries
    of the history have the ``margin`` besides, and ``deeper``: moves above the least depth by
    singularity, None for a tree with a branch of more than `MAX_DEPTH` moves. In other than three
    axes the margin alone counts.

    Args:
        targets: goal of rho by opponent, above 0.
        every: when to evaluate.
        average: measure and keep a moving average of the online network's weights: the share of the
            old average that stays at every parallel step, 0..1 (less at first, to forget the
            untrained network); 0: no average. Training does not use the average.
        arguments: arguments of `RhoEvaluation` except ``best``.
    """

    remembered = (*RhoEvaluation.remembered, "_averaged", "_steps")

    def __init__(
        self,
        targets: Mapping[str, float],
        every: Every | Mapping[str, Any],
        *,
        average: float = 0.0,
        **arguments: Any,
    ) -> None:
        super().__init__(list(targets), every, **arguments)
        self.targets = {
            name: check_number(f"targets: {name}", target, low=0, above=True)
            for name, target in targets.items()
        }
        self.average = average
        self._averaged: list[Tensor] = []
        self._steps = 0

    def _on_training_start(self) -> None:
        if seat_of(self.model)[0] != "host":
            raise ValueError("targets: got those of an agent; expected a host's")
        super()._on_training_start()

    def _online(self) -> list[Tensor]:
        q_net: Any = self.model.policy.q_net
        return [weights.data for weights in q_net.parameters()]

    def _on_step(self) -> bool:
        if self.average:
            self._averaged = self._averaged or [weights.clone() for weights in self._online()]
            self._steps += 1
            stays = min(self.average, (1 + self._steps) / (10 + self._steps))
            for weights, online in zip(self._averaged, self._online(), strict=True):
                weights.lerp_(online, 1.0 - stays)
        return super()._on_step()

    def evaluate(self) -> dict[str, float]:
        """Evaluates now, with the averaged weights if there are any; returns rho by opponent."""
        kept = [weights.clone() for weights in self._online()]
        try:
            self._set_weights(self._averaged or kept)
            return super().evaluate()
        finally:
            self._set_weights(kept)

    def _set_weights(self, given: list[Tensor]) -> None:
        for online, weights in zip(self._online(), given, strict=True):
            online.copy_(weights)

    def _score(self, results: dict[str, float]) -> tuple[float, dict[str, Any]]:
        margin = min(results[name] / target for name, target in self.targets.items())
        deeper = _deeper(player_of(self.model)) if self._game["dimension"] == 3 else {}
        kept = all(moves is not None and moves <= DEEPER for moves in deeper.values())
        return margin if kept else margin - 1.0, {"deeper": deeper, "margin": margin}


def _deeper(host: Any) -> dict[str, int | None]:
    """Moves above the least depth in the worst case, by singularity."""
    found = exploitability(host, singularities(), cut=MAX_DEPTH)
    known = zip(singularity_names(), found.regret[:, 1], found.strength[:, 0] > 0, strict=True)
    return {name: int(moves) if is_known else None for name, moves, is_known in known}


class Losses(NamedTuple):
    """Means over a batch.

    Attributes:
        choice: minus log of the probability that a softmax of the values puts on the best moves.
        value: Huber distance of the best moves to their return, and of others above the most that
            they can return to that.
    """

    choice: Tensor
    value: Tensor


def losses(values: Tensor, batch: Asked, gamma: float, temperature: float) -> Losses:
    """Both losses of action values [B, A] for solved positions, on the device of the values.

    A host's move that is not best takes one move more at least, an agent's gets one less. Every
    move costs a host 1 and gives an agent 1, as the reward ``step`` says.

    Args:
        values: values of all actions; those of illegal actions are ignored.
        batch: B positions.
        gamma: the environment's discount.
        temperature: divisor of the values before the softmax.
    """

    def returned(moves: Tensor) -> Tensor:
        value = value_of_moves(moves[:, None], gamma)
        return value if host else -value

    regret, host = batch.regret.to(values.device), batch.coords is None
    legal, optimal = regret >= 0, regret == 0
    logits = values / temperature
    whole, best = (logits.masked_fill(~each, -torch.inf) for each in (legal, optimal))
    choice = whole.logsumexp(1) - best.logsumexp(1)
    moves = batch.value.to(values.device)
    exact = returned(moves)
    # An agent who ends the game at once has no worse game; the bound is then that of no move.
    most = returned(moves + 1 if host else moves - 1)
    zero = torch.zeros_like(values)
    near = huber_loss(values - exact, zero, reduction="none")
    above = huber_loss((values - most).clamp(min=0.0), zero, reduction="none")
    value = _row_mean(near, optimal) + _row_mean(above, legal & ~optimal)
    return Losses(choice.mean(), value.mean())


def _row_mean(x: Tensor, chosen: Tensor) -> Tensor:
    return (x * chosen).sum(1) / chosen.sum(1).clamp(min=1)


def model_losses(model: Any, batch: Asked, temperature: float) -> Losses:
    """The losses of a DDQN's online network on positions of its seat."""
    points = seat_of(model)[1]
    observed = observation(batch, points.shape[0], scale=float(points.high.max()) <= 1.0)
    values = model.policy.q_net(to_device(observed, model.device))
    return losses(values, batch, model.gamma, temperature)


def observation(batch: Asked, rows: int, scale: bool = True) -> Any:
    """What an environment with this many rows and ``scale_observation=scale`` shows of them."""
    shown = observations_of(batch.state, rows, scale)
    if batch.coords is None:
        return shown
    return {"coords": batch.coords.to(torch.int8), "points": shown}
