"""The random numbers of an algorithm that are drawn on its device, in streams of their own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

__all__ = ["RandomStreams"]


class RandomStreams:
    """Generators for exploration and for `predict`, and a seed for replay sampling.

    They are independent of each other and of the global generators. Without a seed, a non-negative
    integer, they take fresh entropy.
    """

    def __init__(self, seed: int | None, device: torch.device) -> None:
        words = np.random.SeedSequence(seed).generate_state(3, np.uint64) >> np.uint64(1)
        self.explore = torch.Generator(device).manual_seed(int(words[0]))
        self.predict = torch.Generator(device).manual_seed(int(words[1]))
        self.replay_seed = int(words[2])

    def state_dict(self) -> dict[str, Tensor]:
        """The generators' states as byte tensors on the CPU."""
        return {"explore": self.explore.get_state(), "predict": self.predict.get_state()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on where `state_dict` was taken; on another kind of device the streams begin anew."""
        for name in ("explore", "predict"):
            generator: torch.Generator = getattr(self, name)
            if state[name].shape == generator.get_state().shape:
                generator.set_state(state[name].cpu())
