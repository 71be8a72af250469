"""What callbacks share: a rhythm that survives a resume, and a way to end training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor

from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.off_policy.callback_locals import LazyArray
from sb3_ext.schedules.frequency import Every, parse_every


class PeriodicCallback(BaseCallback):
    """Does something every so often; a resumed run goes on in the same rhythm.

    Args:
        every: how often, an `Every` or ``{"updates": 1000}``.
        verbose: as in SB3.
    """

    def __init__(self, every: Every | Mapping[str, Any], verbose: int = 0) -> None:
        super().__init__(verbose)
        self.every = parse_every(every)

    def _is_due(self) -> bool:
        """Whether it is time again; asking counts as having acted."""
        transitions = self.model.num_timesteps
        return self.every.due(updates=num_updates(self.model), transitions=transitions)

    def _on_step(self) -> bool:
        return True

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs, as tensors and plain data."""
        return {"every": self.every.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state_dict` was taken."""
        self.every.load_state_dict(state["every"])


def as_tensor(value: Any) -> Tensor:
    """What a callback finds in its locals, as a tensor where it is."""
    if isinstance(value, LazyArray):
        return value.tensor
    return value if isinstance(value, Tensor) else torch.from_numpy(np.asarray(value))


def stop_training(model: Any) -> bool:
    """Asks a model to end the running `learn`; returns what `_on_step` has to return.

    Our algorithms make the updates for what was collected first, so that a checkpoint written at
    the end continues exactly. Those of SB3 know only the end in the middle of a rollout.
    """
    if hasattr(model, "request_stop"):
        model.request_stop()
        return True
    model.stop_requested = True  # for who drives it without `learn`
    return False
