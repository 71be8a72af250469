"""The table of algorithms: `--algo` of `train`, `algorithm` of `two_player`.

A new algorithm needs one entry. Its hyperparameters, search space and driver in `two_player` follow
from the class that it derives from.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm

from sb3_ext.config.checks import ConfigError, Registry
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.legality import mask_key, shown_masks
from sb3_ext.networks.extractors import extractor_class
from sb3_ext.networks.mlp import ACTIVATIONS
from sb3_ext.types import Arguments

ALGORITHMS: Registry[type[BaseAlgorithm]] = Registry("algorithm", BaseAlgorithm)
"""Algorithms of stable-baselines3's form."""


class ObservedMaskPPO(MaskablePPO):
    """MaskablePPO whose `predict` also finds the legal actions in the observation.

    SB3's `EvalCallback` and rl_zoo3's enjoy call `predict` without masks, and would play illegal
    actions.
    """

    def predict(
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        action_masks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """As in sb3-contrib; ``action_masks`` default to those of the observation."""
        key = mask_key(self.observation_space, self.action_space)
        if action_masks is None:
            action_masks = shown_masks(observation) if key is None else observation[key]
        return super().predict(observation, state, episode_start, deterministic, action_masks)


ALGORITHMS.update(ddqn=DDQN, ppo_mask=ObservedMaskPPO)
# These do not know which actions are legal: give the environment `invalid_action="noop"`.
ALGORITHMS.update(a2c=A2C, dqn=DQN, ppo=PPO, ppo_lstm=RecurrentPPO, qrdqn=QRDQN)
_NAMES = {kind: name for name, kind in ALGORITHMS.items()}
ALGORITHMS.later(minimax="sb3_ext.minimax:MinimaxDQN")


def family(algorithm: type[BaseAlgorithm]) -> str | None:
    """Return the name of the algorithm here that a class is or derives from, or None."""
    return next((_NAMES[base] for base in algorithm.__mro__ if base in _NAMES), None)


def with_policy_classes(policy_kwargs: Arguments, algorithm: type) -> Arguments:
    """Return a copy of a policy's arguments, with classes in place of their names.

    For DDQN the names stay: its policies resolve them.

    Raises:
        ConfigError: The extractor values actions one by one, which SB3's policies cannot use.
    """
    kwargs = copy.deepcopy(dict(policy_kwargs))
    if issubclass(algorithm, DDQN):
        return kwargs
    extractor = kwargs.pop("extractor", None)
    name = kwargs.get("features_extractor_class") or extractor  # in this order, as in DDQN
    if name:
        kind = extractor_class(name)
        kwargs["features_extractor_class"] = kind
        if getattr(kind, "per_action", False):
            raise ConfigError(
                f"extractor: got {name} for {algorithm.__name__}; expected another one, or the "
                "algorithm ddqn or minimax"
            )
    if isinstance(kwargs.get("activation_fn"), str):
        kwargs["activation_fn"] = ACTIVATIONS.resolve(kwargs["activation_fn"])
    return kwargs
