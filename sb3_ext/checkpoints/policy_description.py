"""What a policy is made of as plain data, so that a checkpoint can be played without its program.

Classes are written as names of registries. A policy of your own becomes loadable with

    from sb3_ext.checkpoints.policy_description import POLICIES
    POLICIES.register("mine", MyPolicy)

if its constructor takes what its ``_get_constructor_parameters`` returns, as SB3's policies do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable import policies as maskable
from sb3_contrib.qrdqn import policies as qrdqn
from stable_baselines3.common.policies import (
    ActorCriticPolicy,
    BasePolicy,
    MultiInputActorCriticPolicy,
)
from stable_baselines3.common.utils import ConstantSchedule
from stable_baselines3.dqn import policies as dqn

from sb3_ext.checkpoints.format import split_state
from sb3_ext.config.effects import judge
from sb3_ext.config.registry import Registry
from sb3_ext.config.sections import errors_of
from sb3_ext.networks.extractors import EXTRACTORS
from sb3_ext.networks.mlp import ACTIVATIONS, check_net_arch

POLICIES: Registry[type[BasePolicy]] = Registry("policy")
"""Policies that can be built from a checkpoint. Those of `sb3_ext.ddqn` are added by it."""

POLICIES.update(
    {
        "contrib.MaskableActorCriticPolicy": maskable.MaskableActorCriticPolicy,
        "contrib.MaskableMultiInputActorCriticPolicy": maskable.MaskableMultiInputActorCriticPolicy,
        "contrib.QRDQNMultiInputPolicy": qrdqn.MultiInputPolicy,
        "contrib.QRDQNPolicy": qrdqn.QRDQNPolicy,
        "sb3.ActorCriticPolicy": ActorCriticPolicy,
        "sb3.DQNMultiInputPolicy": dqn.MultiInputPolicy,
        "sb3.DQNPolicy": dqn.DQNPolicy,
        "sb3.MultiInputActorCriticPolicy": MultiInputActorCriticPolicy,
    }
)

# The spaces are described apart; the others matter only for training, which makes its own.
_LEFT_OUT = {
    *("action_space", "lr_schedule", "observation_space", "optimizer_class", "optimizer_kwargs")
}

# The arguments that are classes, and the tables of their names.
_NAMED_BY: dict[str, Registry[Any]] = {
    "activation_fn": ACTIVATIONS,
    "features_extractor_class": EXTRACTORS,
}

# What makes a space of each kind.
_FIELDS: dict[type[spaces.Space[Any]], tuple[str, ...]] = {
    spaces.Box: ("low", "high", "shape", "dtype"),
    spaces.Discrete: ("n", "start"),
    spaces.MultiBinary: ("shape",),
    spaces.MultiDiscrete: ("nvec", "dtype"),
}

_DTYPE = re.compile(r"u?int(8|16|32|64)|float(16|32|64)")


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
        if name in _NAMED_BY:
            value = _NAMED_BY[name].name_of(value)
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


class _NoOptimizer(torch.optim.Optimizer):
    """In the place of an optimiser: torch takes a second or two to begin with the first one."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.defaults, self.state, self.param_groups = {}, {}, []  # type: ignore[assignment]


def build_policy(description: Mapping[str, Any], device: torch.device | str = "cpu") -> BasePolicy:
    """A policy with fresh weights, as `describe_policy` described it, that only plays.

    Raises:
        ValueError: a name is not registered, or the description is malformed.
    """
    expected = {"class", "observation_space", "action_space", "arguments"}
    if not isinstance(description, Mapping) or set(description) != expected:
        raise ValueError(f"policy: need {sorted(expected)}, got {description!r:.200}")
    arguments = dict(description["arguments"])
    # Names of registries, none of which a file may extend by a module:Class.
    judge([description["class"], *(str(arguments.get(name)) for name in _NAMED_BY)], "policy")
    make: Any = POLICIES.resolve(description["class"])
    for name, registry in _NAMED_BY.items():
        if name in arguments:
            arguments[name] = registry.resolve(arguments[name])
    with errors_of("policy arguments", ValueError):
        check_net_arch(arguments.get("net_arch") or [])
        policy: BasePolicy = make(
            observation_space=build_space(description["observation_space"]),
            action_space=build_space(description["action_space"]),
            lr_schedule=ConstantSchedule(0.0),
            optimizer_class=_NoOptimizer,
            **arguments,
        )
    policy.set_training_mode(False)
    return policy.to(device)


def describe_space(space: spaces.Space[Any]) -> dict[str, Any]:
    """A Box, Discrete, MultiBinary, MultiDiscrete, or a Dict of these, as plain data.

    Raises:
        ValueError: a space of another kind.
    """
    if isinstance(space, spaces.Dict):
        entries = {str(key): describe_space(entry) for key, entry in space.spaces.items()}
        return {"type": "Dict", "spaces": entries}
    for kind, fields in _FIELDS.items():
        if isinstance(space, kind):
            plain = {name: _plain(name, getattr(space, name)) for name in fields}
            return {"type": kind.__name__, **plain}
    raise ValueError(
        f"space: {type(space).__name__} cannot be described; Box, Discrete, MultiBinary,"
        " MultiDiscrete and Dict can"
    )


def _plain(name: str, value: Any) -> Any:
    if name == "dtype":
        return str(value)
    values = np.asarray(value)
    if name in ("low", "high"):  # one number where all are the same
        first = values.flat[0] if values.size else np.float64(0.0)
        if bool((values == first).all()):
            return first.tolist()
    return values.tolist()


def build_space(description: Mapping[str, Any]) -> spaces.Space[Any]:
    """The space that `describe_space` described.

    Raises:
        ValueError: the description is malformed.
    """
    try:
        kind = description["type"]
        if kind == "Box":
            low, high = (np.array(description[key]) for key in ("low", "high"))
            dtype, shape = _dtype(description["dtype"]), tuple(description["shape"])
            return spaces.Box(
                np.broadcast_to(low.astype(dtype), shape),
                np.broadcast_to(high.astype(dtype), shape),
                dtype=dtype.type,
            )
        if kind == "Discrete":
            return spaces.Discrete(description["n"], start=description["start"])
        if kind == "MultiBinary":
            shape = description["shape"]
            return spaces.MultiBinary(shape[0] if len(shape) == 1 else shape)
        if kind == "MultiDiscrete":
            dtype = _dtype(description["dtype"])
            return spaces.MultiDiscrete(description["nvec"], dtype=dtype.type)
        if kind == "Dict":
            return spaces.Dict({k: build_space(v) for k, v in description["spaces"].items()})
    except (AssertionError, AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"space: {description!r} is malformed ({error!r})") from error
    raise ValueError(f"space: unknown type {kind!r}")


def _dtype(name: Any) -> np.dtype[Any]:
    if not isinstance(name, str) or not _DTYPE.fullmatch(name):
        raise ValueError(f"space: unknown dtype {name!r}")
    return np.dtype(name)
