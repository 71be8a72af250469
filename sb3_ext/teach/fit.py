"""Losses of imitation with the solver as the expert: what best moves and a value v ask of Q.

The value is the number of moves that the game takes, this one counted, if both sides play their
best; see docs/teaching.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import huber_loss

from sb3_ext.adapter.observations import to_device
from sb3_ext.networks.policy_scores import seat_of
from sb3_ext.teach.solved import Solved

RETURNS = ("step", "survival", "terminal")
"""Rewards of the environment for which the return of a game of so many moves is known."""


class Losses(NamedTuple):
    """Means over a batch.

    Attributes:
        choice: minus log of the probability that a softmax of the values puts on the best moves.
        value: Huber distance of the best moves to their return, and of others above the most that
            they can return to that.
    """

    choice: Tensor
    value: Tensor


def game_return(moves: Tensor, seat: str, reward: str, gamma: float) -> Tensor:
    """The discounted return, float32 [B], of games that end after ``moves`` moves [B]."""
    moves = moves.to(torch.float32)
    if reward == "terminal":
        value = gamma ** (moves - 1.0)
    else:  # -1 for every move, or for every one but the last
        terms = moves if reward == "step" else moves - 1.0
        value = -(terms if gamma == 1.0 else (1.0 - gamma**terms) / (1.0 - gamma))
    return value if seat == "host" else -value


def losses(values: Tensor, batch: Solved, reward: str, gamma: float, temperature: float) -> Losses:
    """Both losses of action values [B, A] for solved positions, on the device of the values.

    A host's move that is not best takes one move more at least, an agent's gets one less.

    Args:
        values: of all actions; those of illegal ones play no part.
        batch: B positions.
        reward: the environment's, one of `RETURNS`.
        gamma: its discount.
        temperature: values are divided by it before the softmax.
    """
    optimal, host = batch.optimal.to(values.device), batch.seat == "host"
    legal = torch.ones_like(optimal) if host else batch.coords.to(values.device)
    logits = values / temperature
    whole, best = (logits.masked_fill(~each, -torch.inf) for each in (legal, optimal))
    choice = whole.logsumexp(1) - best.logsumexp(1)
    moves = batch.value.to(values.device)
    # An agent who ends the game at once has no worse game; the bound is then that of no move.
    most = game_return(moves + 1 if host else moves - 1, batch.seat, reward, gamma)
    exact = game_return(moves, batch.seat, reward, gamma)[:, None].expand_as(values)
    near = huber_loss(values, exact, reduction="none")
    excess = (values - most[:, None]).clamp(min=0.0)
    above = huber_loss(excess, torch.zeros_like(excess), reduction="none")
    value = _row_mean(near, optimal) + _row_mean(above, legal & ~optimal)
    return Losses(choice.mean(), value.mean())


def _row_mean(x: Tensor, chosen: Tensor) -> Tensor:
    return (x * chosen).sum(1) / chosen.sum(1).clamp(min=1)


def model_losses(model: Any, batch: Solved, reward: str, temperature: float) -> Losses:
    """The losses of a DDQN's online network on positions of its seat."""
    points = seat_of(model)[1]
    observed = batch.observed(points.shape[0], scale=float(points.high.max()) <= 1.0)
    values = model.policy.q_net(to_device(observed, model.device))
    return losses(values, batch, reward, model.gamma, temperature)


def check_seat(data: Solved, model: Any) -> None:
    """Raises a ValueError if a model cannot learn from these positions."""
    seat, points = seat_of(model)
    rows, dimension = points.shape
    for name, given, fits, wanted in (
        ("seat", data.seat, data.seat == seat, seat),
        ("dimension", data.points.shape[2], data.points.shape[2] == dimension, dimension),
        ("points", data.points.shape[1], data.points.shape[1] <= rows, f"at most {rows}"),
    ):
        if not fits:
            raise ValueError(f"data: {name}: got {given}; expected {wanted}, as the policy has")
    if not len(data):
        raise ValueError("data: got no position; expected some to learn from")


def seeded(*numbers: int) -> torch.Generator:
    """A generator for one purpose and update: equal numbers give equal draws."""
    word = np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(word >> np.uint64(1)))
