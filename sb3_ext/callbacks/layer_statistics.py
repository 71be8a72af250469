"""Weights and gradients, layer by layer: where a network saturates or stops learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.schedules.frequency import Every, parse_every

__all__ = ["LayerStatistics", "layer_statistics"]


def layer_statistics(policy: Any) -> dict[str, float]:
    """What `LayerStatistics` logs, by key; waits for the device once."""
    names, values = [], []
    for name, parameter in policy.named_parameters():
        if parameter.grad is None:
            continue
        for kind, tensor in (("weight", parameter.detach()), ("gradient", parameter.grad)):
            names += [f"layers/{name}/{kind}_mean", f"layers/{name}/{kind}_std"]
            # Of all entries, so that one entry alone has a deviation too: 0.
            values += [tensor.mean(), tensor.std(correction=0)]
    return dict(zip(names, torch.stack(values).tolist(), strict=True)) if names else {}


class LayerStatistics(BaseCallback):
    """Logs mean and standard deviation of every parameter and of its last gradient.

    The keys are ``layers/<parameter>/weight_mean``, ``weight_std``, ``gradient_mean`` and
    ``gradient_std``; only parameters that had a gradient are logged (a target network has none).
    They are read when a rollout begins, after the updates of the one before, with one wait for the
    device. A gradient is shown after clipping.
    """

    def __init__(self, every: Every | Mapping[str, Any]) -> None:
        """Prepares.

        Args:
            every: when to log, an `Every` or ``{"updates": 100}``.
        """
        super().__init__()
        self.every = parse_every(every)

    def _on_rollout_start(self) -> None:
        updates = num_updates(self.model)
        if self.every.due(updates=updates, transitions=self.num_timesteps):
            self.log()

    def _on_step(self) -> bool:
        return True

    def log(self) -> None:
        """Logs now."""
        for name, value in layer_statistics(self.model.policy).items():
            self.logger.record(name, value, exclude="stdout")

    def state_dict(self) -> dict[str, Any]:
        """When it was last due."""
        return {"every": self.every.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on in the same rhythm."""
        self.every.load_state_dict(state["every"])
