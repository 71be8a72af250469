"""The algorithms that the command lines know by name, beyond those of rl_zoo3."""

from __future__ import annotations

from typing import Any

import numpy as np
from sb3_contrib import MaskablePPO

from sb3_ext.ddqn import DDQN
from sb3_ext.off_policy.legality import mask_key

__all__ = ["EXTRA_ALGORITHMS", "ObservedMaskPPO"]


class ObservedMaskPPO(MaskablePPO):
    """MaskablePPO whose `predict` also finds the legal actions in the observation.

    Tools that know nothing of masks (SB3's `EvalCallback`, rl_zoo3's enjoy) call `predict` without
    any, and would play illegal actions.
    """

    def predict(
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        action_masks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """As in sb3-contrib; without ``action_masks`` those that the observation names."""
        key = mask_key(self.observation_space, self.action_space)
        if action_masks is None and key is not None:
            action_masks = np.asarray(observation[key], dtype=bool)
        return super().predict(observation, state, episode_start, deterministic, action_masks)


EXTRA_ALGORITHMS: dict[str, Any] = {"ddqn": DDQN, "ppo_mask": ObservedMaskPPO}
"""Name on the command line -> class."""
