"""Names of optimisers for configuration files."""

from __future__ import annotations

import torch
from torch import optim

from sb3_ext.common.registry import Registry

__all__ = ["OPTIMIZERS", "forget_tiny_moments"]

OPTIMIZERS: Registry[type[optim.Optimizer]] = Registry("optimizer")
OPTIMIZERS.register("adam", optim.Adam)
OPTIMIZERS.register("adamw", optim.AdamW)
OPTIMIZERS.register("rmsprop", optim.RMSprop)
OPTIMIZERS.register("sgd", optim.SGD)

TINY = 1e-30
"""Mean gradients below this move no weight. After 100 updates without a gradient (beta 0.9) 3e-35
is left of it, still a normal float32."""


def forget_tiny_moments(optimizer: optim.Optimizer) -> None:
    """Sets mean gradients (`exp_avg` of Adam and its kin) that are all but zero to zero.

    Those of a unit that has died shrink by a constant factor in every update. After some 800 they
    are subnormal numbers, with which a processor calculates so slowly that a step of Adam takes
    several times as long. To be called every 100 updates or so, at updates that a resumed run meets
    as well.
    """
    for state in optimizer.state.values():
        mean = state.get("exp_avg")
        if isinstance(mean, torch.Tensor):
            mean.masked_fill_(mean.abs() < TINY, 0.0)
