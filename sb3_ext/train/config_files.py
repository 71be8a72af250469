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
from sb3_ext.cluster.collector import CollectorSettings
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
from sb3_ext.config.sections import ConfigError, read_section
from sb3_ext.ddqn import DDQN
from sb3_ext.networks.extractors import EXTRACTORS
from sb3_ext.networks.mlp import ACTIVATIONS, check_net_arch
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from sb3_ext.runs.checkpoint_format import errors_named

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
    "batch_size": 2**20,
    "buffer_size": 2**36,  # more are terabytes
    "frame_stack": 2**10,
    "n_envs": 2**20,
    "n_epochs": LARGEST_COUNT,
    "n_steps": 2**20,
    "n_timesteps": LARGEST_COUNT,
}
"""The greatest of what is counted; sizes of what is held in memory at once end at 2^20."""


def read_sections(path: Path) -> dict[str, Any]:
    """The sections of a file."""
    data = read_mapping(path)
    if not all(isinstance(section, Mapping) for section in data.values()):
        raise ConfigError(f"{path}: must map environment ids (or 'default') to keys")
    return {str(name): dict(section) for name, section in data.items()}


def section_of(path: Path, env_id: str) -> tuple[str, dict[str, Any]]:
    """The section of an environment, or ``default``, after its place for messages."""
    sections = read_sections(path)
    for name in (env_id, "default"):
        if name in sections:
            return f"{path}, {name}", sections[name]
    raise ConfigError(f"{path}: no section {env_id!r} and no 'default'")


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
        for place, (name, arguments) in enumerate(named_with_arguments(values.get("callback"))):
            with errors_named(f"callback[{place}].{name}", ConfigError):
                _check_callback(name, arguments)
        read_section(CollectorSettings, values.get("collector", {}), "collector")


def named_with_arguments(given: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """Names of callbacks, each with its arguments, from rl_zoo3's several forms."""
    entries = [] if given is None else given if isinstance(given, list) else [given]
    return [
        (str(name), arguments or {})
        for each in entries
        for name, arguments in (each if isinstance(each, Mapping) else {each: None}).items()
    ]


def _check_callback(name: str, arguments: Mapping[str, Any]) -> None:
    kind: Any = None
    if "." not in name:
        kind = CALLBACKS.resolve(name)
    with suppress(ValueError):  # of a module that the command line names
        kind = kind or known_class(name)
    if kind is not None:
        check_arguments(kind, arguments)


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
    if key in COUNTS and check_count(key, value) > COUNTS[key]:
        raise ConfigError(f"{key} must be at most {COUNTS[key]}, got {value}")
    if key == "train_freq":
        steps, unit = value if isinstance(value, list) and len(value) == 2 else (value, "step")
        check_count(key, steps)
        if unit not in ("step", "episode"):
            raise ConfigError(f"train_freq: {unknown_word('unit', unit, ('step', 'episode'))}")
    if key == "policy_kwargs":
        check_net_arch(value.get("net_arch", []))


def with_classes(values: Mapping[str, Any], algorithm: type) -> dict[str, Any]:
    """A copy of a section with classes for names, where rl_zoo3 would evaluate or not find them.

    Wrappers and policies stay dotted names, which rl_zoo3 imports. The policies of our algorithms
    read the names of extractor and activation_fn themselves.
    """
    result = copy.deepcopy(dict(values))
    if result.get("replay_buffer_class") is not None:
        result["replay_buffer_class"] = BUFFERS[result["replay_buffer_class"]]
    kwargs = {} if issubclass(algorithm, DDQN) else result.get("policy_kwargs", {})
    if "extractor" in kwargs:
        kwargs["features_extractor_class"] = EXTRACTORS.resolve(kwargs.pop("extractor"))
    if isinstance(kwargs.get("activation_fn"), str):
        kwargs["activation_fn"] = ACTIVATIONS.resolve(kwargs["activation_fn"])
    return result
