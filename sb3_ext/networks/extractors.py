"""Features extractors by name, and the plain one that only flattens.

Pass one as ``policy_kwargs=dict(features_extractor_class=..., features_extractor_kwargs=...)`` to
any SB3 algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common import torch_layers
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor

from sb3_ext.config.registry import Registry

EXTRACTORS: Registry[type[BaseFeaturesExtractor]] = Registry("features extractor")
# What SB3's policies take when none is named.
EXTRACTORS.register("sb3.CombinedExtractor", torch_layers.CombinedExtractor)
EXTRACTORS.register("sb3.FlattenExtractor", torch_layers.FlattenExtractor)


def flatten_entries(observation: Tensor | Mapping[str, Tensor], keys: Sequence[str]) -> Tensor:
    """One tensor [N, ...], or entries of a mapping of such in the order of `keys`, as rows.

    Floats [N, total size], of the observation's own type if it has one.
    """
    parts = [observation] if isinstance(observation, Tensor) else [observation[k] for k in keys]
    flat = [part.flatten(1) for part in parts]
    flat = [part if part.is_floating_point() else part.float() for part in flat]
    return flat[0] if len(flat) == 1 else torch.cat(flat, 1)


@EXTRACTORS.register("flatten")
class FlattenExtractor(BaseFeaturesExtractor):
    """The observation as one vector; the entries of a Dict space in alphabetical order.

    Raises:
        ValueError: the space is a Dict inside a Dict.
    """

    def __init__(self, observation_space: spaces.Space[Any]) -> None:
        entries = observation_space.spaces if isinstance(observation_space, spaces.Dict) else {}
        if any(isinstance(entry, spaces.Dict) for entry in entries.values()):
            raise ValueError(f"a Dict inside a Dict cannot be flattened: {observation_space}")
        super().__init__(observation_space, int(get_flattened_obs_dim(observation_space)))
        self.keys = tuple(sorted(entries))

    def forward(self, observations: Tensor | Mapping[str, Tensor]) -> Tensor:
        """From observations [N, ...] to features [N, features_dim]."""
        return flatten_entries(observations, self.keys)
