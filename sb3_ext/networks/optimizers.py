"""Optimisers by name, learning rates for parts of a network, and removal of tiny moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn, optim

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


class FusedAdam(optim.Adam):
    """Adam with `fused=True` and the same bits; PyTorch sorts tensors for longer than it steps."""

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """One step of every group, without PyTorch's hooks around steps and its profiler's mark."""
        for group in self.param_groups:
            parts: list[list[Tensor]] = [[] for _ in range(6)]
            self._init_group(group, *parts)
            torch._foreach_add_(parts[5], 1)  # the numbers of steps
            beta1, beta2 = group["betas"]
            names = ("amsgrad", "eps", "lr", "maximize", "weight_decay")
            settings = {name: group[name] for name in names}
            torch._fused_adam_(*parts, beta1=beta1, beta2=beta2, **settings)

    step.hooked = True  # type: ignore[attr-defined]  # so PyTorch puts nothing around it


def clip_gradients(parameters: Sequence[Tensor], max_norm: float) -> Tensor:
    """As `nn.utils.clip_grad_norm_`, of one device and type; the sorting by these takes longer."""
    gradients = [each.grad for each in parameters if each.grad is not None]
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    torch._foreach_mul_(gradients, (max_norm / (norm + 1e-6)).clamp(max=1.0))
    return norm


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


def parameter_groups(network: nn.Module, factors: Mapping[str, float]) -> list[dict[str, Any]]:
    """The parameters of a network in groups for an optimiser, by the parts that they belong to.

    Args:
        network: the network.
        factors: by the beginning of parameters' names, up to a dot, what the learning rate is
            multiplied with, at least 0. The first that fits counts.

    Returns:
        The group of those that no name stands for, then one for each name.

    Raises:
        TypeError, ValueError: a factor is no number of at least 0, or no parameter has the name.
    """
    groups: dict[str, dict[str, Any]] = {}
    for name, factor in factors.items():
        where = f"learning_rate_factors.{name}"
        groups[name] = {"params": [], "rate_factor": check_number(where, factor, low=0)}
    rest: dict[str, Any] = {"params": [], "rate_factor": 1.0}
    parameters = dict(network.named_parameters())
    for name, parameter in parameters.items():
        fitting = (groups[each] for each in groups if f"{name}.".startswith(f"{each}."))
        next(fitting, rest)["params"].append(parameter)
    for name in groups:
        if not groups[name]["params"]:
            known = {each.split(".")[0] for each in parameters}
            raise ValueError(f"learning_rate_factors: {unknown_word('part', name, known)}")
    return [rest, *groups.values()]
