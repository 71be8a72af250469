"""Optimisers by name, and what is done to gradients and moments around their steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import optim

from sb3_ext.config.registry import Registry

OPTIMIZERS: Registry[type[optim.Optimizer]] = Registry("optimizer", optim.Optimizer)
OPTIMIZERS.register("adam", optim.Adam)
OPTIMIZERS.register("adamw", optim.AdamW)
OPTIMIZERS.register("rmsprop", optim.RMSprop)
OPTIMIZERS.register("sgd", optim.SGD)

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
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state.get(parameter, {})
            mean, square = state.get("exp_avg"), state.get("exp_avg_sq")
            if isinstance(mean, torch.Tensor):
                mean.masked_fill_(mean.abs() < TINY, 0.0)
            if isinstance(square, torch.Tensor) and group.get("eps", 0.0) >= 1e-15:
                square.masked_fill_(square < TINY_SQUARE, 0.0)


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
