"""The mathematics of DQN and double DQN on a batch, with legal-action masks.

Letters: B rows of a batch, A actions. A mask says `legal`, True = allowed; None means that every
action is. Minus infinity appears only inside an argmax, never in a value that is returned, because
`0 * -inf` in a target is NaN.

The functions of a whole step of the loop (`epsilon_greedy`, `bootstrap_target`, `huber_terms`,
`measures`) are compiled for float32 numbers on a CPU where numba is installed: each is a dozen
operations on a few numbers a row, most of whose time is the calls. The operations stand beside as
the reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from sb3_ext.networks.compiled import are_plain, compiled_module


def _compiled_for(*given: Tensor | None) -> Any:
    """The compiled functions if they suit these numbers, or None."""
    return compiled_module("sb3_ext.ddqn.compiled_targets") if are_plain(*given) else None


def _fit(shape: torch.Size, *given: Tensor | None) -> bool:
    """Whether all have this shape: compiled code does not look where its arrays end."""
    return all(each is None or each.shape == shape for each in given)


def _mask_of(legal: Tensor | None, actions: int) -> np.ndarray:
    """A mask as the compiled functions take it."""
    return np.empty((0, actions), np.bool_) if legal is None else legal.contiguous().numpy()


def legal_argmax(values: Tensor, legal: Tensor | None) -> Tensor:
    """Index of the largest legal value of every row of `[B, A]`, finite; `[B]` int64.

    The first one among equals, and 0 in a row without a legal action.
    """
    if legal is not None:
        values = values.masked_fill(~legal, -torch.inf)
    return values.max(dim=1).indices  # for few actions about half the time of argmax


def uniform_legal(legal: Tensor, generator: torch.Generator) -> Tensor:
    """One action per row, uniform among its legal ones, `[B]` int64; 0 where there is none.

    Takes B * A uniform numbers from a generator on the device of `legal`, `[B, A]` bool.
    """
    noise = torch.rand(legal.shape, generator=generator, device=legal.device)
    return torch.where(legal, noise, -1.0).argmax(dim=1)


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
    rows, actions = values.shape
    noise = torch.rand((rows, actions + 1), generator=generator, device=values.device)
    quick = _compiled_for(values, noise)
    if quick is not None and _fit(values.shape, legal):
        chosen = torch.empty(rows, dtype=torch.int64)
        quick.choose(
            values.detach().numpy(),
            noise.numpy(),
            _mask_of(legal, actions),
            np.float32(epsilon),
            chosen.numpy(),
        )
        return chosen
    coin, choice = noise[:, 0], noise[:, 1:]
    if legal is not None:
        choice = torch.where(legal, choice, -1.0)
    return torch.where(coin < epsilon, choice.max(dim=1).indices, legal_argmax(values, legal))


def boltzmann(
    values: Tensor, legal: Tensor | None, temperature: float, generator: torch.Generator
) -> Tensor:
    """A legal action drawn in each row with probability proportional to exp(value / temperature).

    The largest of values plus Gumbel noise times the temperature, so that 0 is the best action.

    Args:
        values: Action values `[B, A]`.
        legal: Legal actions `[B, A]` bool, or None.
        temperature: At least 0, in the unit of the values.
        generator: Source of B * A exponential numbers, on the device of `values`.

    Returns:
        Indices `[B]` int64.
    """
    noise = torch.empty_like(values).exponential_(generator=generator)
    smallest = torch.finfo(noise.dtype).tiny
    return legal_argmax(values - temperature * noise.clamp_(min=smallest).log_(), legal)


def bootstrap_value(
    next_values: Tensor, next_legal: Tensor | None = None, next_online: Tensor | None = None
) -> Tensor:
    """Value of the next state, `[B]`; 0 where no action is legal.

    Plain DQN (Mnih et al. 2015): the largest legal value of the target network. Double DQN (van
    Hasselt, Guez, Silver 2016, equation 4): the target network's value of the action that the
    online network prefers among the legal ones.

    Args:
        next_values: Target network at the next observation, `[B, A]`.
        next_legal: Legal actions there, `[B, A]` bool, or None.
        next_online: Online network there, `[B, A]`, for double DQN; None for plain DQN.
    """
    preferred = legal_argmax(next_values if next_online is None else next_online, next_legal)
    value = next_values.gather(1, preferred[:, None])[:, 0]
    if next_legal is None:
        return value
    return torch.where(next_legal.any(dim=1), value, 0.0)


def td_target(
    rewards: Tensor, dones: Tensor, discounts: Tensor | float, next_value: Tensor
) -> Tensor:
    """Targets `R + discount * V(next)`, `[B]`, without the second term where an episode terminated.

    What the network says of a terminal observation has no influence at all, not even a NaN.

    Args:
        rewards: Reward, or the discounted sum R of n rewards, `[B]`.
        dones: 1 where the episode terminated within these steps (not by a time limit), `[B]`.
        discounts: gamma ** k with k the number of summed rewards, `[B]` or a number.
        next_value: Result of `bootstrap_value`, `[B]`.
    """
    return torch.where(dones > 0, rewards, rewards + discounts * next_value)


def bootstrap_target(
    rewards: Tensor,
    dones: Tensor,
    discounts: Tensor | float,
    next_values: Tensor,
    next_legal: Tensor | None = None,
    next_online: Tensor | None = None,
) -> Tensor:
    """`td_target` of `bootstrap_value`: targets `[B]`; the arguments are theirs."""
    gamma = discounts if isinstance(discounts, Tensor) else None
    quick = _compiled_for(rewards, dones, gamma, next_values, next_online)
    fit = _fit(next_values.shape, next_legal, next_online)
    if quick is None or not fit or not _fit(next_values.shape[:1], rewards, dones, gamma):
        value = bootstrap_value(next_values, next_legal, next_online)
        return td_target(rewards, dones, discounts, value)
    result = torch.empty(len(rewards))
    values = next_values.detach().numpy()
    quick.bootstrap_targets(
        values,
        values if next_online is None else next_online.detach().numpy(),
        _mask_of(next_legal, values.shape[1]),
        rewards.numpy(),
        dones.numpy(),
        np.full(1, discounts, np.float32) if gamma is None else gamma.numpy(),
        result.numpy(),
    )
    return result


def huber_terms(values: Tensor, actions: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Huber's loss with threshold 1, and what it is about, both with gradients.

    Args:
        values: Action values `[B, A]`.
        actions: The chosen ones, `[B, 1]` int64.
        target: What their values should have been, `[B]`, without a gradient.

    Returns:
        The mean over the batch, a scalar, and the values of the chosen actions, `[B]`.
    """
    if has_huber_gradient(values, actions) and are_plain(target):
        found: tuple[Tensor, Tensor] = _HuberTerms.apply(values, actions, target)  # type: ignore[no-untyped-call]
        return found
    predicted = values.gather(1, actions)[:, 0]
    return functional.smooth_l1_loss(predicted, target), predicted


def has_huber_gradient(values: Tensor, actions: Tensor) -> bool:
    """Whether `huber_gradient` knows such numbers."""
    return _compiled_for(values) is not None and actions.shape == (len(values), 1)


def huber_gradient(
    values: Tensor, actions: Tensor, target: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """As `huber_terms`, without gradients, and the loss's with respect to the values `[B, A]`."""
    predicted, gradient = torch.empty_like(target), torch.empty_like(values)
    arrays = (each.detach().numpy() for each in (values, actions, target, predicted, gradient))
    loss = _compiled_for().huber_loss(*arrays)
    if loss < 0.0:
        raise IndexError(f"actions must be in 0..{values.shape[1] - 1}, got {actions.tolist()}")
    return torch.tensor(loss, dtype=torch.float32), predicted, gradient


class _HuberTerms(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, values: Tensor, actions: Tensor, target: Tensor
    ) -> tuple[Tensor, Tensor]:
        loss, predicted, gradient = huber_gradient(values, actions, target)
        context.save_for_backward(gradient, actions)
        context.set_materialize_grads(False)
        return loss, predicted

    @staticmethod
    @once_differentiable
    def backward(context: Any, of_loss: Tensor | None, of_predicted: Tensor | None) -> Any:
        gradient, actions = context.saved_tensors
        gradient = torch.zeros_like(gradient) if of_loss is None else gradient * of_loss
        if of_predicted is not None:
            gradient.scatter_add_(1, actions, of_predicted[:, None])
        return gradient, None, None


def measures(predicted: Tensor, target: Tensor) -> Tensor:
    """Means of both and of how far they are apart, and the greatest such distance, `[4]`."""
    if (quick := _compiled_for(predicted, target)) is not None:
        measured = torch.empty(4)
        quick.measure(predicted.numpy(), target.numpy(), measured.numpy())
        return measured
    error = (predicted - target).abs()
    return torch.stack([predicted.mean(), target.mean(), error.mean(), error.max()])
