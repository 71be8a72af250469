"""Where an algorithm learns which actions are legal: the observation, the environment, or nowhere.

A mask says `legal`, True = allowed, `[N, A]` bool for N rows and A actions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from sb3_ext.config.registry import unknown_word

MASK_KEYS = ("action_mask", "coords")
MASK_SOURCES = ("auto", "observation", "environment", "none")


def mask_key(observation_space: spaces.Space, action_space: spaces.Space) -> str | None:
    """The first of `MASK_KEYS` that is a mask, `MultiBinary(A)` for A actions, or None."""
    if isinstance(observation_space, spaces.Dict) and isinstance(action_space, spaces.Discrete):
        for key in MASK_KEYS:
            space = observation_space.spaces.get(key)
            if isinstance(space, spaces.MultiBinary) and space.shape == (int(action_space.n),):
                return key
    return None


def environment_masks(env: VecEnv) -> Tensor | np.ndarray:
    """Ask a vector environment which actions are legal now, `[N, A]`.

    Understands `TensorVecEnv`, and sb3-contrib's `action_masks()` of every single environment.
    """
    # Looked up on the class: a wrapper's attribute forwarding would skip the wrapper.
    if hasattr(type(env), "action_masks_tensor"):
        return env.action_masks_tensor()  # type: ignore[attr-defined, no-any-return]
    return np.stack(env.env_method("action_masks"))


class LegalActions:
    """Legal actions from the source that was asked for.

    Args:
        observation_space: Of one row.
        action_space: `Discrete(A)`.
        env: The environment, or None where only the observation can be asked.
        source: `"observation"`, `"environment"`, `"none"`, or `"auto"`: the first of
            these that can tell. A `TensorVecEnv` whose `all_actions_legal` is True has nothing to
            tell.

    Attributes:
        key: Entry of the observation that is the mask, or None.
        source: `"observation"`, `"environment"` or `"none"`.

    Raises:
        ValueError: An unknown source, or one that does not know the legal actions.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        env: VecEnv | None = None,
        source: str = "auto",
    ) -> None:
        if source not in MASK_SOURCES:
            raise ValueError(unknown_word("mask_source", source, MASK_SOURCES))
        key = mask_key(observation_space, action_space)
        has_masks = env is not None and env.has_attr("action_masks")
        fault = None
        if source == "observation" and key is None:
            entry = f"MultiBinary entry named {' or '.join(MASK_KEYS)} of the size of"
            fault = f"{observation_space} has no {entry} {action_space}"
        elif source == "environment" and env is not None and not has_masks:
            fault = "the environment has no action_masks()"
        if fault is not None:
            raise ValueError(f"mask_source: got {source!r}, but {fault}")
        if source == "auto":
            # Looked up on the class: a wrapper around it may have masks of its own.
            all_legal = hasattr(type(env), "all_actions_legal") and env.all_actions_legal  # type: ignore[union-attr]
            asked = "environment" if has_masks and not all_legal else "none"
            source = asked if key is None else "observation"
        self.source = source
        self.key = key if source == "observation" else None

    def of_observation(self, observation: Any) -> Tensor | None:
        """The mask inside a batch of observations, `[N, A]` bool, or None if it is not there."""
        return None if self.key is None else observation[self.key].bool()

    def now(
        self, observation: Any, env: VecEnv | None, device: torch.device, known: Tensor | None
    ) -> Tensor | None:
        """Legal actions at the current observation, `[N, A]` bool, or None if nobody tells.

        An environment that said so already (`known`) is not asked again.
        """
        if self.source != "environment" or env is None:
            return self.of_observation(observation)
        if known is not None:
            return known
        return torch.as_tensor(environment_masks(env), device=device).bool()

    def after(
        self, env: VecEnv, device: torch.device, dones: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        """Masks from an environment that was just stepped, if it is asked: for now, and to store.

        The mask of a final observation is unknown, and every action counts as legal there.
        """
        if self.source != "environment":
            return None, None
        legal = torch.as_tensor(environment_masks(env), device=device).bool()
        return legal, legal | dones.to(device)[:, None]
