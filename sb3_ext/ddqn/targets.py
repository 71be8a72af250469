"""The mathematics of DQN and double DQN on a batch, with legal-action masks.

Letters: B rows of a batch, A actions. A mask says `legal`, True = allowed; None means that every
action is. Minus infinity appears only inside an argmax, never in a value that is returned, because
`0 * -inf` in a target is NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

LOSSES = {  # of values against targets, with an argument `reduction`
    "huber": functional.smooth_l1_loss,  # Huber's, with threshold 1
    "mae": functional.l1_loss,
    "mse": functional.mse_loss,
}


def legal_argmax(values: Tensor, legal: Tensor | None) -> Tensor:
    """Index of the largest legal value of every row of `[B, A]`, finite; `[B]` int64.

    The first one among equals, and 0 in a row without a legal action.
    """
    if legal is not None:
        values = values.masked_fill(~legal, -torch.inf)
    return values.max(dim=1).indices  # for few actions about half the time of argmax


def epsilon_greedy(
    values: Tensor, legal: Tensor | None, epsilon: float, generator: torch.Generator
) -> Tensor:
    """The best legal action, or with probability epsilon in each row by itself a random legal one.

    Args:
        values: Action values `[B, A]`.
        legal: Legal actions `[B, A]` bool, or None.
        epsilon: Probability of a random action; 0 never explores and 1 always does.
        generator: Source of B * (A + 1) uniform numbers, whatever epsilon is, on the device of
            `values`.

    Returns:
        Indices `[B]` int64.
    """
    shape = (len(values), values.shape[1] + 1)
    noise = torch.rand(shape, generator=generator, device=values.device)
    return legal_argmax(torch.where(noise[:, :1] < epsilon, noise[:, 1:], values), legal)


def boltzmann(
    values: Tensor, legal: Tensor | None, temperature: float, generator: torch.Generator
) -> Tensor:
    """A legal action drawn in each row with probability proportional to exp(value / temperature).

    The largest of values plus Gumbel noise times the temperature, so that 0 is the best action.
    Arguments as for `epsilon_greedy`; the generator gives B * A exponential numbers.
    """
    noise = torch.empty_like(values).exponential_(generator=generator)
    smallest = torch.finfo(noise.dtype).tiny
    return legal_argmax(values - temperature * noise.clamp_(min=smallest).log_(), legal)


STRATEGIES = {"epsilon_greedy": epsilon_greedy, "boltzmann": boltzmann}


def bootstrap_target(
    rewards: Tensor,
    dones: Tensor,
    discounts: Tensor | float,
    next_values: Tensor,
    next_legal: Tensor | None = None,
    next_online: Tensor | None = None,
) -> Tensor:
    """Targets `R + discount * V(next)`, `[B]`, without the second term where an episode terminated.

    Plain DQN (Mnih et al. 2015): V is the largest legal value of the target network. Double DQN
    (van Hasselt, Guez, Silver 2016, equation 4): the target network's value of the action that the
    online network prefers among the legal ones. It is 0 where no action is legal. What the network
    says of a terminal observation has no influence at all, not even a NaN.

    Args:
        rewards: Reward, or the discounted sum R of n rewards, `[B]`.
        dones: 1 where the episode terminated within these steps (not by a time limit), `[B]`.
        discounts: gamma ** k with k the number of summed rewards, `[B]` or a number.
        next_values: Target network at the next observation, `[B, A]`.
        next_legal: Legal actions there, `[B, A]` bool, or None.
        next_online: Online network there, `[B, A]`, for double DQN; None for plain DQN.
    """
    preferred = legal_argmax(next_values if next_online is None else next_online, next_legal)
    value = next_values.gather(1, preferred[:, None])[:, 0]
    if next_legal is not None:
        value = torch.where(next_legal.any(dim=1), value, 0.0)
    return torch.where(dones > 0, rewards, rewards + discounts * value)
