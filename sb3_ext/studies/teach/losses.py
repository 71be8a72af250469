"""Losses of imitation learning with the solver as the expert: pure functions of batches.

The expert knows, for every position, the set of optimal moves and the value v: how many moves the
game takes, this one counted, if both sides play their best. An action value network learns both:

    choice    cross-entropy: -log of the probability that softmax(Q / temperature) gives the optimal
              set
    value     Q of every optimal move is the discounted return R(v) of that game; Q of every other
              legal move is at most that of a game one move worse

The first fixes which move is best; the second keeps the numbers action values, so that
reinforcement learning goes on from them instead of unlearning them first. Against an opponent who
is not optimal the true values are higher than R(v), never lower.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

RETURNS = ("step", "survival", "terminal")
"""Rewards of the environment for which the return of a game of so many moves is known."""


def game_return(moves: Tensor, seat: str, reward: str, gamma: float) -> Tensor:
    """The discounted return of games that end after ``moves`` moves [B], as float32 [B].

    That of the host, for the agent its negative, with a discount ``gamma`` of 0..1.

    Raises:
        ValueError: ``reward`` is none of `RETURNS`.
    """
    if reward not in RETURNS:
        raise ValueError(
            f"reward: got {reward!r}; the return of a game is known for {', '.join(RETURNS)}"
        )
    moves = moves.to(torch.float32)
    if reward == "terminal":
        value = gamma ** (moves - 1.0)
    else:  # -1 for every move, or for every one but the last
        terms = moves if reward == "step" else moves - 1.0
        value = -(terms if gamma == 1.0 else (1.0 - gamma**terms) / (1.0 - gamma))
    return value if seat == "host" else -value


def choice_loss(
    values: Tensor, optimal: Tensor, legal: Tensor | None, temperature: float
) -> Tensor:
    """Minus log of the softmax probability of the optimal set, float [B].

    Args:
        values: action values [B, A].
        optimal: bool [B, A], at least one in every row, all of them legal.
        legal: bool [B, A], or None if every action is.
        temperature: values are divided by it; above 0.
    """
    logits = values / temperature
    everything = logits if legal is None else logits.masked_fill(~legal, -torch.inf)
    chosen = logits.masked_fill(~optimal, -torch.inf)
    return everything.logsumexp(1) - chosen.logsumexp(1)


def value_loss(
    values: Tensor, optimal: Tensor, legal: Tensor | None, best: Tensor, worse: Tensor
) -> Tensor:
    """Huber distance of the optimal moves to ``best``, and of others above ``worse`` to it.

    ``best`` [B] is the return of optimal moves, ``worse`` [B] the most that another move can
    return; the rest is that of `choice_loss`. Returns float [B]: the mean over the optimal moves,
    plus the mean over the others.
    """
    others = ~optimal if legal is None else legal & ~optimal
    near = functional.huber_loss(values, best[:, None].expand_as(values), reduction="none")
    excess = (values - worse[:, None]).clamp(min=0.0)
    above = functional.huber_loss(excess, torch.zeros_like(excess), reduction="none")
    return _row_mean(near, optimal) + _row_mean(above, others)


def _row_mean(x: Tensor, chosen: Tensor) -> Tensor:
    return (x * chosen).sum(1) / chosen.sum(1).clamp(min=1)


class TeachingLoss(NamedTuple):
    """Means over a batch, scalars.

    Attributes:
        total: the weighted sum, with gradients.
        choice: see `choice_loss`.
        value: see `value_loss`; 0 if its weight is 0.
    """

    total: Tensor
    choice: Tensor
    value: Tensor


def teaching_loss(
    values: Tensor,
    optimal: Tensor,
    legal: Tensor | None,
    moves: Tensor,
    *,
    seat: str,
    reward: str,
    gamma: float,
    temperature: float,
    value_weight: float,
) -> TeachingLoss:
    """Choice and value together.

    A host's move that is not optimal takes one move more at least, an agent's gets one less.

    ``moves``, int64 [B], are the values v of the positions, ``seat`` is who moves; the choice has
    weight 1. See `choice_loss` and `game_return` for the other arguments.
    """
    choice = choice_loss(values, optimal, legal, temperature).mean()
    if value_weight == 0.0:
        return TeachingLoss(choice, choice.detach(), torch.zeros_like(choice.detach()))
    best = game_return(moves, seat, reward, gamma)
    # An agent who ends the game at once has no worse game; the bound is then that of no move.
    worse = game_return(moves + 1 if seat == "host" else (moves - 1), seat, reward, gamma)
    value = value_loss(values, optimal, legal, best, worse).mean()
    return TeachingLoss(choice + value_weight * value, choice.detach(), value.detach())
