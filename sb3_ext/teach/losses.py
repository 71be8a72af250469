"""The losses of a network on solved positions; see docs/teaching.md."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import huber_loss

from resgym.benchmark.solved import Asked
from sb3_ext.adapter.seam import to_device
from sb3_ext.minimax.algorithm import observations_of, value_of_moves
from sb3_ext.networks.mlp import seat_of


def losses(values: Tensor, batch: Asked, gamma: float, temperature: float) -> tuple[Tensor, Tensor]:
    """Both losses of action values [B, A] for solved positions, on the device of the values.

    A host's move that is not best takes one move more at least, an agent's gets one less. Every
    move costs a host 1 and gives an agent 1, as the reward ``step`` says.

    Args:
        values: values of all actions; those of illegal actions are ignored.
        batch: B positions.
        gamma: the environment's discount.
        temperature: divisor of the values before the softmax.

    Returns:
        Means over the batch. Choice loss: minus log of the probability that a softmax of the values
        puts on the best moves. Value loss: Huber distance of the best moves to their return, and of
        others above the most that they can return to that.
    """

    def returned(moves: Tensor) -> Tensor:
        value = value_of_moves(moves[:, None], gamma)
        return value if host else -value

    regret = batch.regret.to(values.device)
    host = batch.coords is None
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
    return choice.mean(), value.mean()


def _row_mean(x: Tensor, chosen: Tensor) -> Tensor:
    return (x * chosen).sum(1) / chosen.sum(1).clamp(min=1)


def model_losses(model: Any, batch: Asked, temperature: float) -> tuple[Tensor, Tensor]:
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
