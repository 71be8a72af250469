"""What a policy is made of as plain data, so that a checkpoint can be played without its program.

Classes are written as names of registries and looked up there; no name is ever imported from a
file. A policy of your own becomes loadable with

    from sb3_ext.checkpoints.policy_description import POLICIES
    POLICIES.register("mine", MyPolicy)

if its constructor takes what its ``_get_constructor_parameters`` returns, as SB3's policies do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from sb3_contrib.common.maskable.policies import (
    MaskableActorCriticPolicy,
    MaskableMultiInputActorCriticPolicy,
)
from sb3_contrib.qrdqn.policies import MultiInputPolicy as QRDQNMultiInputPolicy
from sb3_contrib.qrdqn.policies import QRDQNPolicy
from stable_baselines3.common.policies import (
    ActorCriticPolicy,
    BasePolicy,
    MultiInputActorCriticPolicy,
)
from stable_baselines3.common.torch_layers import (
    BaseFeaturesExtractor,
    CombinedExtractor,
    FlattenExtractor,
)
from stable_baselines3.dqn.policies import DQNPolicy
from stable_baselines3.dqn.policies import MultiInputPolicy as DQNMultiInputPolicy

import sb3_ext.points  # noqa: F401  registers its extractors
from sb3_ext.checkpoints.plain_state import split_state
from sb3_ext.checkpoints.space_description import build_space, describe_space
from sb3_ext.config.registry import Registry, unknown_word
from sb3_ext.networks.extractors import EXTRACTORS
from sb3_ext.networks.mlp import ACTIVATIONS

__all__ = ["POLICIES", "build_policy", "describe_policy"]

POLICIES: Registry[type[BasePolicy]] = Registry("policy")
"""Policies that can be built from a checkpoint. Those of `sb3_ext.ddqn` are added by it."""

POLICIES.register("sb3.ActorCriticPolicy", ActorCriticPolicy)
POLICIES.register("sb3.MultiInputActorCriticPolicy", MultiInputActorCriticPolicy)
POLICIES.register("sb3.DQNPolicy", DQNPolicy)
POLICIES.register("sb3.DQNMultiInputPolicy", DQNMultiInputPolicy)
POLICIES.register("contrib.MaskableActorCriticPolicy", MaskableActorCriticPolicy)
POLICIES.register(
    "contrib.MaskableMultiInputActorCriticPolicy", MaskableMultiInputActorCriticPolicy
)
POLICIES.register("contrib.QRDQNPolicy", QRDQNPolicy)
POLICIES.register("contrib.QRDQNMultiInputPolicy", QRDQNMultiInputPolicy)

# Extractors of SB3 that its policies take when none is named.
_STOCK_EXTRACTORS: dict[str, type[BaseFeaturesExtractor]] = {
    "sb3.CombinedExtractor": CombinedExtractor,
    "sb3.FlattenExtractor": FlattenExtractor,
}
# The spaces are described apart; the others matter only for training, which makes its own.
_LEFT_OUT = {
    "action_space",
    "lr_schedule",
    "observation_space",
    "optimizer_class",
    "optimizer_kwargs",
}


def describe_policy(policy: BasePolicy) -> dict[str, Any]:
    """A policy's class and arguments as plain data.

    Raises:
        ValueError: its class, extractor or activation has no registered name, or an argument is no
            plain data.
    """
    arguments = {}
    for name, value in policy._get_constructor_parameters().items():
        if name in _LEFT_OUT:
            continue
        if name == "activation_fn":
            value = ACTIVATIONS.name_of(value)
        elif name == "features_extractor_class":
            value = _extractor_name(value)
        try:
            arguments[name], tensors = split_state(value, name)
        except TypeError as error:
            raise ValueError(str(error)) from error
        if tensors:
            raise ValueError(f"{name}: holds tensors, not plain data")
    return {
        "class": POLICIES.name_of(type(policy)),
        "observation_space": describe_space(policy.observation_space),
        "action_space": describe_space(policy.action_space),
        "arguments": arguments,
    }


def build_policy(description: Mapping[str, Any], device: torch.device | str = "cpu") -> BasePolicy:
    """A policy with fresh weights, as `describe_policy` described it.

    Raises:
        ValueError: a name is not registered, or the description is malformed.
    """
    expected = {"class", "observation_space", "action_space", "arguments"}
    if not isinstance(description, Mapping) or set(description) != expected:
        raise ValueError(f"policy: need {sorted(expected)}, got {description!r:.200}")
    policy_class = POLICIES.resolve(description["class"])
    arguments = dict(description["arguments"])
    if "activation_fn" in arguments:
        arguments["activation_fn"] = ACTIVATIONS.resolve(arguments["activation_fn"])
    if "features_extractor_class" in arguments:
        arguments["features_extractor_class"] = _extractor(arguments["features_extractor_class"])
    make: Any = policy_class
    try:
        policy: BasePolicy = make(
            observation_space=build_space(description["observation_space"]),
            action_space=build_space(description["action_space"]),
            lr_schedule=_no_learning,
            **arguments,
        )
    except TypeError as error:
        raise ValueError(f"policy arguments: {error}") from error
    policy.set_training_mode(False)
    return policy.to(device)


def _no_learning(progress_remaining: float) -> float:
    return 0.0


def _extractor_name(extractor: Any) -> str:
    for name, known in _STOCK_EXTRACTORS.items():
        if known is extractor:
            return name
    return EXTRACTORS.name_of(extractor)


def _extractor(name: Any) -> type[BaseFeaturesExtractor]:
    if name in _STOCK_EXTRACTORS:
        return _STOCK_EXTRACTORS[name]
    if name not in EXTRACTORS:
        names = [*EXTRACTORS.names(), *_STOCK_EXTRACTORS]
        raise ValueError(unknown_word("features extractor", name, names))
    return EXTRACTORS.resolve(name)
