"""Names of optimisers for configuration files."""

from __future__ import annotations

from torch import optim

from sb3_ext.common.registry import Registry

__all__ = ["OPTIMIZERS"]

OPTIMIZERS: Registry[type[optim.Optimizer]] = Registry("optimizer")
OPTIMIZERS.register("adam", optim.Adam)
OPTIMIZERS.register("adamw", optim.AdamW)
OPTIMIZERS.register("rmsprop", optim.RMSprop)
OPTIMIZERS.register("sgd", optim.SGD)
