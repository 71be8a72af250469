"""Hyperparameter files in rl_zoo3's form, checked before anything is built.

See docs/configuration.md; nothing in them is ever evaluated as code.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common import buffers

from sb3_ext.callbacks import CALLBACKS
from sb3_ext.cluster.collector import CollectorSettings
from sb3_ext.config.checks import (
    ConfigError,
    Registry,
    check_arguments,
    check_policy,
    errors_named,
)
from sb3_ext.config.effects import known_class
from sb3_ext.config.sections import (
    PositiveCount,
    Section,
    Size,
    Transitions,
    accepted_by,
    read_as,
    read_mapping,
)
from sb3_ext.ddqn import DDQN
from sb3_ext.networks.extractors import extractor_class
from sb3_ext.networks.mlp import ACTIVATIONS, check_net_arch
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer

ZOO_KEYS = (
    "callback collector env_kwargs env_wrapper frame_stack monitor_kwargs n_envs n_timesteps "
    "normalize policy vec_env_wrapper"
)
"""Keys that are not arguments of the algorithm."""

OPTIONS = "device seed tensorboard_log verbose"
"""Arguments of the algorithm that only the command line gives."""

BUFFERS: Registry[type] = Registry("replay buffer")
"""Replay buffers that a file may name."""
for _buffer in (
    *(buffers.DictReplayBuffer, HerReplayBuffer, buffers.ReplayBuffer),
    *(PrioritizedReplayBuffer, TensorReplayBuffer),
):
    BUFFERS.register(_buffer.__name__, _buffer)


def _with_net_arch(given: dict[str, Any]) -> dict[str, Any]:
    check_net_arch(given.get("net_arch", []))
    return given


class ZooKeys(Section):
    """Keys of every algorithm; sizes of what is held in memory at once are bounded."""

    policy: str
    n_timesteps: PositiveCount
    batch_size: Size | None = None
    buffer_size: Transitions | None = None
    collector: CollectorSettings = CollectorSettings()
    env_kwargs: dict[str, Any] = {}  # noqa: RUF012
    frame_stack: Size | None = None
    monitor_kwargs: dict[str, Any] = {}  # noqa: RUF012
    n_envs: Size = 1
    n_epochs: PositiveCount | None = None
    n_steps: Size | None = None
    normalize: bool | dict[str, Any] = False
    policy_kwargs: Annotated[dict[str, Any], AfterValidator(_with_net_arch)] = {}  # noqa: RUF012
    replay_buffer_class: Annotated[
        str | None, accepted_by(lambda name: name is None or BUFFERS.resolve(name))
    ] = None
    replay_buffer_kwargs: dict[str, Any] = {}  # noqa: RUF012


def section_of(path: Path, env_id: str) -> tuple[str, dict[str, Any]]:
    """The section of an environment, or ``default``, after its place for messages."""
    sections = read_mapping(path)
    if not all(isinstance(section, Mapping) for section in sections.values()):
        raise ConfigError(f"{path}: must map environment ids (or 'default') to keys")
    for name in (env_id, "default"):
        if name in sections:
            return f"{path}, {name}", dict(sections[name])
    raise ConfigError(f"{path}: no section {env_id!r} and no 'default'")


def check_hyperparameters(values: Mapping[str, Any], algorithm: type, where: str) -> None:
    """Checks the keys of one section, the algorithm's arguments among them, and the plain types.

    Raises:
        ConfigError: an unknown or missing key, or a value of another type; begins with ``where``.
    """
    with errors_named(where):
        if given := values.keys() & OPTIONS.split():
            raise ConfigError(f"{min(given)} is an option of the command line, not a key of files")
        check_arguments(algorithm, values, ZOO_KEYS.split())
        read_as(ZooKeys, {k: v for k, v in values.items() if k in ZooKeys.model_fields})
        check_policy(algorithm, values["policy"], values.get("policy_kwargs", {}))
        for place, (name, arguments) in enumerate(named_with_arguments(values.get("callback"))):
            with errors_named(f"callback[{place}].{name}"):
                _check_callback(name, arguments)


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


def with_classes(values: Mapping[str, Any], algorithm: type) -> dict[str, Any]:
    """A copy of a section with classes for names, where rl_zoo3 would evaluate or not find them.

    Wrappers and policies stay dotted names, which rl_zoo3 imports. The policies of our algorithms
    read the names of extractor and activation_fn themselves.
    """
    result = copy.deepcopy(dict(values))
    if name := result.get("replay_buffer_class"):
        result["replay_buffer_class"] = BUFFERS.resolve(name)
    kwargs = {} if issubclass(algorithm, DDQN) else result.get("policy_kwargs", {})
    extractor = kwargs.pop("extractor", None)
    if given := kwargs.get("features_extractor_class", extractor):  # the class counts, as in DDQN
        kwargs["features_extractor_class"] = extractor_class(given)
    if isinstance(kwargs.get("activation_fn"), str):
        kwargs["activation_fn"] = ACTIVATIONS.resolve(kwargs["activation_fn"])
    return result


def transitions_for(model: Any, updates: int) -> int:
    """Transitions after which a model has made this many updates, rounded up to whole blocks."""
    if model.replay_ratio is not None or model.gradient_steps < 1:
        raise ValueError("algorithm: gradient_steps must be at least 1, without replay_ratio")
    if updates == 0:
        return 0
    rows = model.n_envs * model.train_freq.frequency
    # Updates begin with the rollout that brings more transitions than learning_starts.
    return int((model.learning_starts // rows - (-updates // model.gradient_steps)) * rows)
