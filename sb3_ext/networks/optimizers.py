"""Names of optimisers for configuration files."""

from __future__ import annotations

import torch
from torch import optim
from torch.optim import optimizer as torch_optimizer

from sb3_ext.config.registry import Registry

__all__ = ["OPTIMIZERS", "forget_tiny_moments", "step_plainly"]

OPTIMIZERS: Registry[type[optim.Optimizer]] = Registry("optimizer")
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

    Those of a unit that has died (`exp_avg` and `exp_avg_sq` of Adam and its kin) shrink by a
    constant factor in every update. After some 800 updates, the squares after some 70,000, they are
    subnormal numbers, with which a processor calculates so slowly that a step of Adam takes several
    times as long. To be called every 100 updates or so, at updates that a resumed run meets as
    well.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state.get(parameter, {})
            mean, square = state.get("exp_avg"), state.get("exp_avg_sq")
            if isinstance(mean, torch.Tensor):
                mean.masked_fill_(mean.abs() < TINY, 0.0)
            if isinstance(square, torch.Tensor) and group.get("eps", 0.0) >= 1e-15:
                square.masked_fill_(square < TINY_SQUARE, 0.0)


def step_plainly(optimizer: optim.Optimizer) -> None:
    """As `optimizer.step()`: the same bits, and for small networks on a CPU in half of the time.

    PyTorch's own `step` of Adam and AdamW in their fused form takes notes for a profiler and sorts
    the parameters by device and type around one operation. That operation and the hooks are called
    here, where nothing else is to be done; otherwise `optimizer.step()` is.
    """
    if not _is_one_operation(optimizer):
        optimizer.step()
        return
    for hook in [*optimizer._optimizer_step_pre_hooks.values()]:
        hook(optimizer, (), {})
    _fused_step(optimizer)
    for hook in [*optimizer._optimizer_step_post_hooks.values()]:
        hook(optimizer, (), {})


def _is_one_operation(optimizer: optim.Optimizer) -> bool:
    """Whether a step is no more than `_fused_step`."""
    own = vars(optimizer)
    if (
        type(optimizer) not in (optim.Adam, optim.AdamW)
        or own.keys() & {"step", "grad_scale", "found_inf"}  # replaced, or told by a scaler
        or torch_optimizer._global_optimizer_pre_hooks
        or torch_optimizer._global_optimizer_post_hooks
        or len(optimizer.param_groups) != 1
    ):
        return False
    group = optimizer.param_groups[0]
    if not group["fused"] or isinstance(group["lr"], torch.Tensor):
        return False
    if any(group[name] for name in ("amsgrad", "capturable", "differentiable")):
        return False
    # The first step makes the state.
    return all(
        each.is_cpu and each.grad is not None and optimizer.state.get(each)
        for each in group["params"]
    )


def _fused_step(optimizer: optim.Optimizer) -> None:
    group = optimizer.param_groups[0]
    parameters = group["params"]
    states = [optimizer.state[each] for each in parameters]
    steps = [state["step"] for state in states]
    beta1, beta2 = group["betas"]
    operation = torch._fused_adamw_ if group["decoupled_weight_decay"] else torch._fused_adam_
    with torch.no_grad():
        torch._foreach_add_(steps, 1)
        operation(
            parameters,
            [each.grad for each in parameters],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            steps,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            lr=group["lr"],
            maximize=group["maximize"],
            weight_decay=group["weight_decay"],
        )
