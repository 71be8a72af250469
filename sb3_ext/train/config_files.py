"""The configuration of a run: options, and a section of a file in rl_zoo3's form.

Both are checked before anything is built. See docs/configuration.md; nothing in them is ever
evaluated as code.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal

import gymnasium
from annotated_types import Ge, Le
from huggingface_sb3 import EnvironmentName
from rl_zoo3.utils import get_class_by_name
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback

from resgym.game.devices import resolve_device
from sb3_ext.callbacks import CALLBACKS
from sb3_ext.cluster.collector import CollectorSettings
from sb3_ext.config.checks import (
    ConfigError,
    Registry,
    check_arguments,
    check_policy,
    errors_named,
    unknown_word,
)
from sb3_ext.config.sections import (
    ConfigFile,
    Count,
    CountOrMinusOne,
    PositiveCount,
    Section,
    Size,
    Switches,
    Threads,
    Transitions,
    Whole,
    accepted_by,
    read_as,
    read_mapping,
)
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.algorithms import ALGORITHMS, family, with_policy_classes
from sb3_ext.networks.mlp import check_widths
from sb3_ext.replay.buffers import TensorReplayBuffer
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from sb3_ext.schedules.schedules import of_progress, parse_schedule
from sb3_ext.types import Arguments

ZOO_KEYS = """
callback collector env_kwargs env_wrapper frame_stack monitor_kwargs n_envs n_timesteps normalize
vec_env_wrapper
"""
"""Keys that are not arguments of the algorithm."""

SCHEDULED = ("learning_rate", "clip_range", "clip_range_vf")
"""Arguments of SB3's algorithms that may be schedules, of the progress alone."""

OPTIONS = "device seed tensorboard_log verbose"
"""Arguments of the algorithm that only the command line gives."""

BUFFERS: Registry[type] = Registry("replay buffer")
"""Replay buffers that a file may name."""
BUFFERS.update(
    DictReplayBuffer=DictReplayBuffer,
    HerReplayBuffer=HerReplayBuffer,
    PrioritizedReplayBuffer=PrioritizedReplayBuffer,
    ReplayBuffer=ReplayBuffer,
    TensorReplayBuffer=TensorReplayBuffer,
)


class ZooKeys(Section):
    """Keys of every algorithm; sizes of what is held in memory at once are bounded."""

    policy: str
    n_timesteps: PositiveCount
    batch_size: Size | None = None
    buffer_size: Transitions | None = None
    collector: CollectorSettings = CollectorSettings()
    env_kwargs: Arguments = {}  # noqa: RUF012
    frame_stack: Size | None = None
    monitor_kwargs: Arguments = {}  # noqa: RUF012
    n_envs: Size = 1
    n_epochs: PositiveCount | None = None
    n_steps: Size | None = None
    normalize: bool | Arguments = False
    policy_kwargs: Arguments = {}  # noqa: RUF012
    replay_buffer_class: str | None = None
    replay_buffer_kwargs: Arguments = {}  # noqa: RUF012


def _check_environment(env_id: Any) -> None:
    if env_id not in gymnasium.registry:
        raise ValueError(unknown_word("environment", env_id, gymnasium.registry))


class TrainConfig(ConfigFile, Switches):
    """A run of ``train``; the text below a field is the help of its option."""

    algo: Annotated[str, accepted_by(ALGORITHMS.resolve)] = "ppo"
    """algorithm, a name or module:Class"""
    env: Annotated[str, accepted_by(_check_environment)] = "CartPole-v1"
    """id of the environment"""
    seed: Annotated[int, Whole, Ge(-1), Le(2**32 - 1)] = -1
    """seed of the run, -1 draws one"""
    device: Annotated[str, accepted_by(lambda name: name == "auto" or resolve_device(name))] = (
        "auto"
    )
    """device of PyTorch"""
    num_threads: Threads = 1
    """threads of PyTorch, -1 leaves it to PyTorch"""
    vec_env: Literal["dummy", "subproc"] = "dummy"
    """how single environments run, dummy or subproc"""
    tensorboard_log: str = ""
    """folder for TensorBoard"""
    log_interval: Annotated[int, Whole, Ge(-2)] = -1
    """as in learn; -1 is its default, -2 logs evaluations alone"""
    eval_freq: CountOrMinusOne = 25000
    """transitions between two evaluations, -1 for none"""
    eval_episodes: Size = 200  # of a few, the best evaluation would be one of luck
    """episodes of an evaluation"""
    n_eval_envs: Size = 50
    """environments of an evaluation"""
    eval_env_kwargs: Arguments | None = None
    """arguments of the environment in evaluations, as key:value; default: those of the run"""
    save_freq: CountOrMinusOne = -1
    """transitions between two copies of the model, -1 for none"""
    save_replay_buffer: bool = False
    """save the replay buffer too, as a pickle"""
    checkpoint_updates: Count = 1000
    """ddqn: updates between two checkpoints, 0 for none"""
    verbose: Annotated[int, Whole, Ge(0), Le(2)] = 1
    """how much is printed, 0 to 2"""
    hyperparameters: Arguments

    @property
    def stem(self) -> EnvironmentName:
        """The id of the environment as part of a path."""
        return EnvironmentName(self.env)


def saved_config(folder: Path) -> TrainConfig:
    """The configuration in the folder of a run; a ConfigError if there is none that is valid."""
    path = folder / "config.yml"
    config, where = TrainConfig.read(path), f"{path}: hyperparameters"
    check_hyperparameters(config.hyperparameters, ALGORITHMS.resolve(config.algo), where)
    return config


def section_of(path: Path, env_id: str) -> tuple[str, Arguments]:
    """The section of an environment, or ``default``, after its place for messages."""
    sections = read_mapping(path)
    if not all(isinstance(section, Mapping) for section in sections.values()):
        raise ConfigError(f"{path}: must map environment ids (or 'default') to keys")
    for name in (env_id, "default"):
        if name in sections:
            return f"{path}, {name}", dict(sections[name])
    raise ConfigError(f"{path}: no section {env_id!r} and no 'default'")


def check_hyperparameters(values: Arguments, algorithm: type, where: str) -> None:
    """Checks the keys of one section, the algorithm's arguments among them, and the plain types.

    Raises:
        ConfigError: an unknown or missing key, or a value of another type; begins with ``where``.
    """
    with errors_named(where):
        if given := values.keys() & OPTIONS.split():
            raise ConfigError(f"{min(given)} is an option of the command line, not a key of files")
        check_arguments(algorithm, values, [*ZOO_KEYS.split(), "policy"])
        read_as(ZooKeys, {k: v for k, v in values.items() if k in ZooKeys.model_fields})
        check_policy(algorithm, values["policy"], values.get("policy_kwargs", {}))
        for key in (*SCHEDULED, "exploration_rate"):
            if values.get(key) is not None:
                parse_schedule(values[key], key)
        for place, (name, arguments) in enumerate(named_with_arguments(values.get("callback"))):
            with errors_named(f"callback[{place}].{name}"):
                check_arguments(_callback_class(name), arguments)


def named_with_arguments(given: Any) -> list[tuple[str, Arguments]]:
    """Names of callbacks, each with its arguments, from rl_zoo3's several forms."""
    entries = [] if given is None else given if isinstance(given, list) else [given]
    return [
        (str(name), arguments or {})
        for each in entries
        for name, arguments in (each if isinstance(each, Mapping) else {each: None}).items()
    ]


def make_callbacks(given: Any) -> list[BaseCallback]:
    """The callbacks that rl_zoo3's forms name."""
    return [_callback_class(name)(**arguments) for name, arguments in named_with_arguments(given)]


def _callback_class(name: str) -> Any:
    """The class of a registered name or of a path, which `judge` has let in."""
    return get_class_by_name(name) if "." in name else CALLBACKS.resolve(name)


def with_classes(values: Arguments, algorithm: Any, env: Any) -> Arguments:
    """The arguments of an algorithm in an environment, with objects for names and schedules.

    The policies and the loop of our algorithms read names and schedules by themselves.

    Raises:
        ConfigError: a schedule or an extractor is not for this algorithm.
        ValueError: a network of SB3's own policies would have too many weights, see `check_widths`.
    """
    arguments = {k: copy.deepcopy(v) for k, v in values.items() if k not in ZOO_KEYS.split()}
    arguments["env"] = env
    if name := arguments.get("replay_buffer_class"):
        arguments["replay_buffer_class"] = BUFFERS.resolve(name)
    if isinstance(arguments.get("train_freq"), list):
        arguments["train_freq"] = tuple(arguments["train_freq"])
    if "." in arguments["policy"]:
        arguments["policy"] = get_class_by_name(arguments["policy"])
    arguments["policy_kwargs"] = with_policy_classes(values.get("policy_kwargs", {}), algorithm)
    if issubclass(algorithm, DDQN):
        return arguments
    for key in SCHEDULED:
        if not isinstance(arguments.get(key), (int, float, NoneType)):
            schedule = parse_schedule(arguments[key], key)
            if schedule.unit != "progress":
                raise ConfigError(
                    f"{key} of {algorithm.__name__} must be a schedule of the progress, got unit "
                    f"{schedule.unit!r}"
                )
            arguments[key] = of_progress(schedule)
    quantiles = 200 if family(algorithm) == "qrdqn" else 1
    check_widths(
        {"n_quantiles": quantiles, **arguments["policy_kwargs"]},
        env.observation_space,
        env.action_space,
    )
    return arguments


def transitions_for(model: Any, updates: int) -> int:
    """Return the transitions after which a `DDQN` has made this many updates.

    They are whole rollouts: of `train_freq` parallel steps, with `gradient_steps` updates each.

    Raises:
        ValueError: the model has a `replay_ratio`, or no fixed number of updates per rollout.
    """
    if model.replay_ratio is not None or model.gradient_steps < 1:
        raise ValueError("algorithm: gradient_steps must be at least 1, without replay_ratio")
    if updates == 0:
        return 0
    per_rollout = model.n_envs * model.train_freq.frequency
    # Updates begin with the rollout that brings more transitions than learning_starts.
    rollouts = model.learning_starts // per_rollout + math.ceil(updates / model.gradient_steps)
    return int(rollouts * per_rollout)
