"""Quantiles of the return instead of its mean: QR-DQN (Dabney et al. 2018), with legal actions.

Letters: B rows, K quantiles, A actions. The value of an action, by which it is chosen, is the mean
of its quantiles. What the loss of sb3-contrib's QRDQN gives for a batch is given here for each row,
since rows may have weights.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sb3_ext.ddqn.targets import legal_argmax, td_target
from sb3_ext.ddqn.update import LossTerms
from sb3_ext.networks.policy_scores import action_values


def num_quantiles(model: Any) -> int:
    """K of a model's network; 1 where only the mean is learned."""
    return int(getattr(model.q_net, "n_quantiles", 1))


def next_quantiles(model: Any, next_obs: Any) -> Tensor:
    """Of the target network, `[B, K, A]`."""
    return action_values(model.q_net_target.quantiles, next_obs, model.autocast)


def quantile_targets(
    rewards: Tensor,
    dones: Tensor,
    discounts: Tensor | float,
    next_quantiles: Tensor,
    next_legal: Tensor | None = None,
    next_online: Tensor | None = None,
) -> Tensor:
    """Targets `[B, K]`: those of the action that counts, 0 for all where none is legal.

    Arguments as in `sb3_ext.ddqn.targets.bootstrap_target`, but `next_quantiles` `[B, K, A]`.
    """
    values = next_quantiles.mean(dim=1) if next_online is None else next_online
    action = legal_argmax(values, next_legal)
    chosen = next_quantiles.gather(2, action[:, None, None].expand(-1, next_quantiles.shape[1], 1))
    chosen = chosen[:, :, 0]
    if next_legal is not None:
        chosen = torch.where(next_legal.any(dim=1, keepdim=True), chosen, 0.0)
    if isinstance(discounts, Tensor):
        discounts = discounts[:, None]
    return td_target(rewards[:, None], dones[:, None], discounts, chosen)


def quantile_huber(predicted: Tensor, target: Tensor) -> Tensor:
    """Loss `[B]` of quantiles `[B, K]` against samples `[B, L]` of what they should describe.

    Sum over the quantiles of the mean over the samples; the k-th of K is pulled to where
    (k + 1/2) / K of the samples lie below.
    """
    count = predicted.shape[1]
    below = (torch.arange(count, device=predicted.device) + 0.5) / count
    error = target[:, None, :] - predicted[:, :, None]
    distance = error.abs()
    huber = torch.where(distance > 1.0, distance - 0.5, 0.5 * error**2)
    side = (below[:, None] - (error.detach() < 0).float()).abs()
    return (side * huber).mean(dim=2).sum(dim=1)


def quantile_terms(model: Any, batch: Any, target: Tensor) -> LossTerms:
    """The loss on a batch with targets `[B, K]`; predicted and target are the means."""
    quantiles = action_values(model.q_net.quantiles, batch.observations, model.autocast)
    action = batch.actions[:, None].expand(-1, quantiles.shape[1], 1)
    predicted = quantiles.gather(2, action)[:, :, 0]
    losses = quantile_huber(predicted, target)
    weights = getattr(batch, "weights", None)
    loss = losses.mean() if weights is None else (weights * losses).mean()
    return LossTerms(loss, predicted.mean(dim=1), target.mean(dim=1))
