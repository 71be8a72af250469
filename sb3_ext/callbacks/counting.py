"""Counters that are kept where the counted things are."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from sb3_ext.off_policy.callback_locals import LazyArray

__all__ = ["EndedEpisodes", "as_tensor"]

_STEPS_BETWEEN_READINGS = 64


def as_tensor(value: Any) -> Tensor:
    """What a callback finds in its locals, as a tensor where it is."""
    if isinstance(value, LazyArray):
        return value.tensor
    return value if isinstance(value, Tensor) else torch.from_numpy(np.asarray(value))


class EndedEpisodes:
    """Number of episodes that have ended.

    On an accelerator it is read every 64 steps only, since reading waits for the device.
    """

    def __init__(self) -> None:
        self.count = 0
        self._pending: Tensor | None = None
        self._steps = 0

    def add(self, dones: Any) -> None:
        """Counts the rows that ended in one step, `[N]` bool."""
        ended = as_tensor(dones).sum()
        self._pending = ended if self._pending is None else self._pending + ended
        self._steps += 1
        if self._pending.device.type == "cpu" or self._steps >= _STEPS_BETWEEN_READINGS:
            self.read()

    def read(self) -> int:
        """The number now; waits for the device."""
        if self._pending is not None:
            self.count += int(self._pending)
        self._pending, self._steps = None, 0
        return self.count
