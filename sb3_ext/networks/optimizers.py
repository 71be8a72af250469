"""Optimisers by name, and what is done to gradients and moments around their steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn, optim
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from sb3_ext.config.checks import check_number
from sb3_ext.config.registry import Registry, unknown_word

OPTIMIZERS: Registry[type[optim.Optimizer]] = Registry("optimizer", optim.Optimizer)
for _kind in (optim.Adam, optim.AdamW, optim.RMSprop, optim.SGD):
    OPTIMIZERS.register(_kind.__name__.lower(), _kind)

TINY = 1e-30
"""Mean gradients below this move no weight. After 100 updates without a gradient (beta 0.9) 3e-35
is left of it, still a normal float32."""

TINY_SQUARE = 2e-38
"""Mean squares below this, whose root is nothing beside Adam's epsilon. After 100 updates without a
gradient (beta 0.999) 1.8e-38 is left of it, still a normal float32."""


def forget_tiny_moments(optimizer: optim.Optimizer) -> None:
    """Sets means of gradients and of their squares that are all but zero to zero.

    Those of a unit that has died (`exp_avg` and `exp_avg_sq` of Adam) shrink in every update. After
    some 800 updates, the squares after some 70,000, they are subnormal numbers, with which a step
    takes several times as long. To be called every 100 updates, those of a resumed run the same.
    """
    for state in optimizer.state.values():
        for name, least in (("exp_avg", TINY), ("exp_avg_sq", TINY_SQUARE)):
            if name in state:
                state[name].masked_fill_(state[name].abs() < least, 0.0)


@torch.no_grad()
def make_step(optimizer: optim.Optimizer) -> None:
    """`optimizer.step()` with the same bits.

    For small networks on a CPU PyTorch takes longer around the one operation of a fused Adam than
    in it, so that operation is called here where nothing else is to be done.
    """
    group = optimizer.param_groups[0]
    parameters = group["params"]
    states: list[Any] = [optimizer.state.get(each) for each in parameters]
    gradients = [each.grad for each in parameters]
    if (
        not _is_one_operation(optimizer)
        or not all(states)
        or any(each is None for each in gradients)
    ):
        optimizer.step()
        return
    steps, means, squares = (
        [state[name] for state in states] for name in ("step", "exp_avg", "exp_avg_sq")
    )
    decoupled = group.get("decoupled_weight_decay", type(optimizer) is optim.AdamW)
    beta1, beta2 = group["betas"]
    torch._foreach_add_(steps, 1)
    (torch._fused_adamw_ if decoupled else torch._fused_adam_)(
        *(parameters, gradients, means, squares, [], steps),
        amsgrad=False,
        beta1=beta1,
        beta2=beta2,
        eps=group["eps"],
        lr=group["lr"],
        maximize=group["maximize"],
        weight_decay=group["weight_decay"],
    )


def _is_one_operation(optimizer: optim.Optimizer) -> bool:
    """Whether a step is a fused Adam of a CPU and nothing else: no hook, no other option."""
    group = optimizer.param_groups[0]
    others = ("amsgrad", "capturable", "differentiable")
    return (
        type(optimizer) in (optim.Adam, optim.AdamW)
        and not vars(optimizer).keys()
        & {"step", "grad_scale", "found_inf"}  # of schedulers, scalers
        and not (optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks)
        and not (_global_optimizer_pre_hooks or _global_optimizer_post_hooks)
        and len(optimizer.param_groups) == 1
        and bool(group["fused"])
        and not any(group[name] for name in others)
        and not isinstance(group["lr"], torch.Tensor)
        and all(each.device.type == "cpu" for each in group["params"])
    )


def parameter_groups(network: nn.Module, factors: Mapping[str, float]) -> list[dict[str, Any]]:
    """The parameters of a network in groups for an optimiser, by the parts that they belong to.

    Args:
        network: the network.
        factors: by the beginning of parameters' names, up to a dot, what the learning rate is
            multiplied with, at least 0. The longest beginning counts.

    Returns:
        The group of those that no name stands for, then one for each name.

    Raises:
        TypeError, ValueError: a factor is no number of at least 0, or no parameter has the name.
    """
    groups: dict[str, dict[str, Any]] = {"": {"params": [], "rate_factor": 1.0}}
    for name, factor in factors.items():
        where = f"learning_rate_factors.{name}"
        groups[name] = {"params": [], "rate_factor": check_number(where, factor, low=0)}
    parts: set[str] = set()
    for name, parameter in network.named_parameters():
        steps = name.split(".")
        beginnings = [".".join(steps[:count]) for count in range(len(steps) + 1)]
        parts.update(beginnings[1:])
        groups[max(groups.keys() & beginnings, key=len)]["params"].append(parameter)
    for name in factors.keys() - parts:
        known = sorted(each for each in parts if each.count(".") < 2)
        raise ValueError(f"learning_rate_factors: {unknown_word('part', name, known)}")
    return list(groups.values())


def clip_gradients(parameters: Sequence[torch.Tensor], max_norm: float) -> torch.Tensor:
    """As `torch.nn.utils.clip_grad_norm_`, for parameters on one device and of one type.

    It skips the sorting by device and type, which takes longer than the arithmetic for networks of
    this size. Returns the norm of all gradients before, a scalar.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    if norm.device.type == "cpu" and float(norm) + 1e-6 <= max_norm:
        return norm  # looking at a value costs nothing here, and the factor would be 1
    torch._foreach_mul_(gradients, (max_norm / (norm + 1e-6)).clamp(max=1.0))
    return norm
