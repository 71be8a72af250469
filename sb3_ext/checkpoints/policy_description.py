"""A policy's description as plain data, so that a checkpoint can play without its program.

Classes are names in registries. Register a policy of your own to make it loadable:

    from sb3_ext.checkpoints.policy_description import POLICIES
    POLICIES.register("mine", MyPolicy)

Its constructor must accept what its ``_get_constructor_parameters`` returns, as in SB3.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib import QRDQN, MaskablePPO
from stable_baselines3 import A2C, DQN
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import ConstantSchedule

from resgym.trust import check_data
from sb3_ext.config.checks import Registry, errors_named, errors_of, shown
from sb3_ext.networks.extractors import EXTRACTORS
from sb3_ext.networks.mlp import ACTIVATIONS, check_widths
from sb3_ext.types import Data

POLICIES: Registry[type[BasePolicy]] = Registry("policy")
"""Policies that can be built from a checkpoint."""

# Those of others by the names of their classes: sb3.ActorCriticPolicy, contrib.QRDQNCnnPolicy.
for _start, _algorithm in (
    ("sb3.", A2C),
    ("sb3.DQN", DQN),
    ("contrib.", MaskablePPO),
    ("contrib.QRDQN", QRDQN),
):
    for _policy in _algorithm.policy_aliases.values():
        POLICIES[_start + _policy.__name__.removeprefix(_algorithm.__name__)] = _policy
POLICIES.later(
    CnnPolicy="sb3_ext.ddqn.policies:CnnPolicy",
    PointsPolicy="sb3_ext.ddqn.policies:PointsPolicy",
    QPolicy="sb3_ext.ddqn.policies:QPolicy",
    # So it is called in shipped players.
    AgentPolicy="sb3_ext.ddqn.policies:PointsPolicy",
    HostPolicy="sb3_ext.ddqn.policies:PointsPolicy",
)

# The spaces are described apart; the others matter only for training, which makes its own.
_SPACES = ("observation_space", "action_space")
_LEFT_OUT = {*_SPACES, "lr_schedule", "optimizer_class", "optimizer_kwargs"}

# The arguments that are classes, and the tables of their names.
_NAMED_BY: dict[str, Registry[Any]] = {
    "activation_fn": ACTIVATIONS,
    "features_extractor_class": EXTRACTORS,
}

# What makes a space of each kind.
_FIELDS = {
    "Box": ("low", "high", "shape", "dtype"),
    "Discrete": ("n", "start"),
    "MultiBinary": ("shape",),
    "MultiDiscrete": ("nvec", "start", "dtype"),
}

_DTYPE = re.compile(r"u?int(8|16|32|64)|float(16|32|64)")


def describe_policy(policy: BasePolicy) -> Data:
    """A policy's class and arguments as plain data.

    Raises:
        ValueError: its class, extractor or activation has no registered name, or an argument is not
            plain data.
    """
    arguments = {}
    for name, value in policy._get_constructor_parameters().items():
        if name not in _LEFT_OUT:
            arguments[name] = _NAMED_BY[name].name_of(value) if name in _NAMED_BY else value
    with errors_named("policy", ValueError):
        arguments = json.loads(json.dumps(arguments))
    return {
        "class": POLICIES.name_of(type(policy)),
        **{name: describe_space(getattr(policy, name)) for name in _SPACES},
        "arguments": arguments,
    }


class _NoOptimizer(torch.optim.Optimizer):
    """In the place of an optimiser: torch takes a second or two to begin with the first one."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.defaults, self.state, self.param_groups = {}, {}, []  # type: ignore[assignment]


def build_policy(description: Data) -> BasePolicy:
    """Build a policy with fresh weights from a `describe_policy`; it can only play.

    Raises:
        ValueError: a name is not registered, or the description is malformed.
    """
    expected = {"class", *_SPACES, "arguments"}
    if not isinstance(description, Mapping) or set(description) != expected:
        raise ValueError(f"policy: need {sorted(expected)}, got {shown(description)}")
    check_data(description, "policy")  # a file may not add a module:Class to the registries
    arguments = dict(description["arguments"])
    make: Any = POLICIES.resolve(description["class"])
    for name, registry in _NAMED_BY.items():
        if name in arguments:
            arguments[name] = registry.resolve(arguments[name])
    with errors_of("policy arguments", ValueError):
        ends = {name: build_space(description[name]) for name in _SPACES}
        check_widths(arguments, *ends.values())
        policy: BasePolicy = make(
            **ends,
            lr_schedule=ConstantSchedule(0.0),
            optimizer_class=_NoOptimizer,
            **arguments,
        )
    policy.set_training_mode(False)
    return policy


def describe_space(space: spaces.Space[Any]) -> Data:
    """A Box, Discrete, MultiBinary, MultiDiscrete, or a Dict of these, as plain data.

    Raises:
        ValueError: a space of another kind.
    """
    if isinstance(space, spaces.Dict):
        entries = {str(key): describe_space(entry) for key, entry in space.spaces.items()}
        return {"type": "Dict", "spaces": entries}
    # A class derived from one of these, such as the game's `Discrete`, is described as that one.
    kind = next((name for name in _FIELDS if isinstance(space, getattr(spaces, name))), None)
    if kind is None:
        raise ValueError(f"space: got {space}; expected {', '.join(_FIELDS)} or a Dict of these")
    fields = {name: getattr(space, name) for name in _FIELDS[kind]}
    plain = {k: str(v) if k == "dtype" else np.asarray(v).tolist() for k, v in fields.items()}
    return {"type": kind, **plain}


def build_space(description: Data, most: int = 2**20) -> spaces.Space[Any]:
    """The space that `describe_space` described, of ``most`` numbers at most.

    Raises:
        ValueError: the description is malformed.
    """
    with errors_named("space", ValueError):
        if (kind := description["type"]) == "Dict":
            entries = description["spaces"].items()
            most //= len(entries)
            return spaces.Dict({key: build_space(entry, most) for key, entry in entries})
        fields = {name: description[name] for name in _FIELDS[kind]}
        if "dtype" in fields:
            if not _DTYPE.fullmatch(fields["dtype"]):
                raise ValueError(f"dtype: got {fields['dtype']!r}; expected int64, float32, ...")
            fields["dtype"] = np.dtype(fields["dtype"]).type
        shape = fields.pop("shape", ())
        if math.prod(shape) > most:
            raise ValueError(f"shape: got {shape}; expected at most {most} numbers")
        if kind == "Box":
            for name in ("low", "high"):
                fields[name] = np.broadcast_to(np.array(fields[name], fields["dtype"]), shape)
        if kind == "MultiBinary":
            fields["n"] = shape[0] if len(shape) == 1 else shape
        found: spaces.Space[Any] = getattr(spaces, kind)(**fields)
        return found
