"""n-step returns as a pure function of windows of consecutive transitions."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["n_step_return"]


def n_step_return(
    rewards: Tensor, ended: Tensor, newer: Tensor, gamma: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Sum up to n rewards of each window, never past an end or past the newest transition.

    The transition that ends an episode is still taken, the one after it is not. Entries that are
    not taken may hold anything, NaN included.

    Args:
        rewards: `[B, n]` float32, rewards of n consecutive transitions, the sampled one first.
        ended: `[B, n]` bool, the transition ended its episode (terminated or truncated).
        newer: `[B]` int64, how many transitions after the first of the window exist.
        gamma: Discount of one step, in [0, 1].

    Returns:
        Sums of gamma^k r_k over the transitions taken, `[B]` float32; gamma^length, the factor of
        the bootstrapped value, `[B]` float32; and the length, 1 to n, `[B]` int64.
    """
    step = torch.arange(rewards.shape[1], device=rewards.device)
    ends_before = ended.cumsum(dim=1) - ended.long()
    taken = (ends_before == 0) & (step <= newer[:, None])
    length = taken.sum(dim=1)
    discounted = rewards * torch.pow(gamma, step.float())
    returns = torch.where(taken, discounted, 0.0).sum(dim=1)
    return returns, torch.pow(gamma, length.float()), length
