"""Weights and gradients, layer by layer: where a network saturates or stops learning."""

from __future__ import annotations

from typing import Any

import torch

from sb3_ext.callbacks.base import PeriodicCallback


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


class LayerStatistics(PeriodicCallback):
    """Logs mean and standard deviation of every parameter and of its last gradient.

    The keys are ``layers/<parameter>/weight_mean``, ``weight_std``, ``gradient_mean`` and
    ``gradient_std``; only parameters that had a gradient are logged (a target network has none).
    They are read when a rollout begins, after the updates of the one before, with one wait for the
    device. A gradient is shown after clipping.
    """

    def _on_rollout_start(self) -> None:
        if self._is_due():
            for name, value in layer_statistics(self.model.policy).items():
                self.logger.record(name, value, exclude="stdout")
