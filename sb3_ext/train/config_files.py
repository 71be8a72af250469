"""Hyperparameter files in rl_zoo3's form, checked before anything is built.

See docs/configuration.md; nothing in them is ever evaluated as code.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common import buffers

from sb3_ext.callbacks import CALLBACKS
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.cluster import RayCollector
from sb3_ext.config.arguments import check_arguments, check_policy
from sb3_ext.config.checks import (
    LARGEST_COUNT,
    check_count,
    check_number,
    numeric_string_hint,
    shown,
)
from sb3_ext.config.effects import known_class
from sb3_ext.config.reading import read_mapping
from sb3_ext.config.registry import unknown_word
from sb3_ext.config.sections import ConfigError
from sb3_ext.ddqn import DDQN
from sb3_ext.networks.extractors import EXTRACTORS
from sb3_ext.networks.mlp import ACTIVATIONS, check_net_arch
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer

ZOO_KEYS = (
    *("callback", "collector", "env_kwargs", "env_wrapper", "exploration_rate", "frame_stack"),
    *("monitor_kwargs", "n_envs", "n_timesteps", "normalize", "policy"),
    "vec_env_wrapper",
)
"""Keys that are no argument of the algorithm."""

MAPPINGS = (
    *("collector", "env_kwargs", "monitor_kwargs", "policy_kwargs", "replay_buffer_kwargs"),
)
BUFFERS: Mapping[str, type] = {
    each.__name__: each
    for each in (
        *(buffers.DictReplayBuffer, HerReplayBuffer, buffers.ReplayBuffer),
        *(PrioritizedReplayBuffer, TensorReplayBuffer),
    )
}
"""Replay buffers that a file may name."""
COUNTS = {
    "batch_size": (1, 2**20),
    "buffer_size": (1, 2**36),  # more are terabytes
    "frame_stack": (1, 2**10),
    "n_envs": (1, 2**20),
    "n_epochs": (1, LARGEST_COUNT),
    "n_steps": (1, 2**20),
    "n_timesteps": (1, LARGEST_COUNT),
}
"""Least and greatest of what is counted; sizes of what is held in memory at once end at 2^20."""


def read_sections(path: Path) -> dict[str, Any]:
    """The sections of a file."""
    data = read_mapping(path)
    if not all(isinstance(section, Mapping) for section in data.values()):
        raise ConfigError(f"{path}: must map environment ids (or 'default') to keys")
    return {str(name): dict(section) for name, section in data.items()}


def check_hyperparameters(values: Mapping[str, Any], algorithm: type, where: str) -> None:
    """Checks the keys of one section, the algorithm's arguments among them, and the plain types.

    Raises:
        ConfigError: an unknown or missing key, or a value of another type; begins with ``where``.
    """
    with errors_named(where, ConfigError):
        check_arguments(algorithm, values, ZOO_KEYS)
        for key in ("policy", "n_timesteps"):
            if key not in values:
                raise ConfigError(f"the key {key} is missing")
        for key, value in values.items():
            _check_value(key, value)
        check_policy(algorithm, values["policy"], values.get("policy_kwargs", {}))
        _check_callbacks(values.get("callback", []))
        with errors_named("collector", ConfigError):
            check_arguments(RayCollector, values.get("collector", {}))


def _check_callbacks(named: Any) -> None:
    """Checks names and arguments of the callbacks that are known without an import."""
    for place, each in enumerate(named if isinstance(named, list) else [named]):
        for name, arguments in (each if isinstance(each, Mapping) else {each: {}}).items():
            with errors_named(f"callback[{place}].{name}", ConfigError):
                kind: Any = None
                if "." not in str(name):
                    kind = CALLBACKS.resolve(name)
                else:
                    with suppress(ValueError):  # of a module that the command line names
                        kind = known_class(str(name))
                if kind is not None:
                    check_arguments(kind, arguments or {})


def _check_value(key: str, value: Any) -> None:
    hint = numeric_string_hint(value)
    if hint:
        raise ConfigError(f"{key} must be a number, got the text {shown(value)}{hint}")
    if key in MAPPINGS and not isinstance(value, Mapping):
        raise ConfigError(f"{key} must be a mapping, got {shown(value)}")
    if key == "policy" and not isinstance(value, str):
        raise ConfigError(f"policy must be text, got {shown(value)}")
    if key == "replay_buffer_class" and value is not None and value not in BUFFERS:
        raise ConfigError(unknown_word("replay_buffer_class", value, BUFFERS))
    if key in ("gae_lambda", "gamma", "tau"):
        check_number(key, value, 0, 1)
    if key == "normalize" and not isinstance(value, (bool, Mapping)):
        raise ConfigError(f"normalize must be true, false or a mapping, got {shown(value)}")
    if key in COUNTS:
        low, high = COUNTS[key]
        if check_count(key, value, low) > high:
            raise ConfigError(f"{key} must be at most {high}, got {value}")
    if key == "train_freq":
        steps, unit = value if isinstance(value, list) and len(value) == 2 else (value, "step")
        check_count(key, steps)
        if unit not in ("step", "episode"):
            raise ConfigError(f"train_freq: {unknown_word('unit', unit, ('step', 'episode'))}")
    if key == "policy_kwargs":
        check_net_arch(value.get("net_arch", []))


def with_classes(values: Mapping[str, Any], algorithm: type) -> dict[str, Any]:
    """The keys of a section with classes for names, where rl_zoo3 would evaluate or not find them.

    Returns:
        A copy; callbacks, wrappers and policies stay dotted names, which rl_zoo3 imports.
    """
    result = copy.deepcopy(dict(values))
    if result.get("replay_buffer_class") is not None:
        result["replay_buffer_class"] = BUFFERS[result["replay_buffer_class"]]
    if "policy_kwargs" in result:
        result["policy_kwargs"] = resolve_extractor(result["policy_kwargs"], algorithm)
    return result


def resolve_extractor(policy_kwargs: Mapping[str, Any], algorithm: type) -> dict[str, Any]:
    """Policy arguments with classes for the names of extractor and activation_fn, as SB3 has them.

    The policies of our algorithms read the names themselves.
    """
    kwargs = dict(policy_kwargs)
    if issubclass(algorithm, DDQN):
        return kwargs
    if "extractor" in kwargs:
        kwargs["features_extractor_class"] = EXTRACTORS.resolve(kwargs.pop("extractor"))
    if isinstance(kwargs.get("activation_fn"), str):
        kwargs["activation_fn"] = ACTIVATIONS.resolve(kwargs["activation_fn"])
    return kwargs
