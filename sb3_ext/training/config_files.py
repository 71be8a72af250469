"""Hyperparameter files in rl_zoo3's form, read as plain data and checked before anything is built.

    resgym/HironakaHost-v0:
      n_envs: 256
      n_timesteps: 1.0e+6
      policy: HostPolicy
      learning_rate: {schedule: linear, init: 1.0e-3, final: 1.0e-5, steps: 12000}
      policy_kwargs: {extractor: point_set, net_arch: [256, 128]}
      env_kwargs: {opponent: choose_first}

Against rl_zoo3: nothing is evaluated as code without ``--trust``; an unknown key is an error;
schedules are those of `sb3_ext.schedules.schedules`; `policy_kwargs` may name an `extractor` for
every algorithm.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sb3_ext.config.registry import unknown_word
from sb3_ext.config.yaml_files import read_yaml
from sb3_ext.networks import ACTIVATIONS, EXTRACTORS

__all__ = ["ZOO_KEYS", "check_hyperparameters", "config_folder", "read_config", "resolve_extractor"]

ZOO_KEYS = (
    "callback",
    "env_kwargs",
    "env_wrapper",
    "exploration_rate",
    "frame_stack",
    "monitor_kwargs",
    "n_envs",
    "n_timesteps",
    "normalize",
    "policy",
    "vec_env_wrapper",
)
"""Keys that are no argument of the algorithm."""

MAPPINGS = ("env_kwargs", "monitor_kwargs", "policy_kwargs", "replay_buffer_kwargs")
COUNTS = ("n_envs", "n_timesteps")


def config_folder() -> Path:
    """Where the shipped files are: beside the code when installed, at the top of a checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "configs", package.parent / "configs"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"configs: no such folder beside {package}")


def read_config(path: Path) -> dict[str, Any]:
    """The sections of a file.

    Raises:
        ValueError: the file is not there or no mapping of mappings.
    """
    if not path.is_file():
        raise ValueError(f"conf-file: no such file {path}")
    data = read_yaml(path)
    if not isinstance(data, Mapping) or not all(isinstance(v, Mapping) for v in data.values()):
        raise ValueError(f"{path}: must map environment ids (or 'default') to keys")
    return {str(name): dict(section) for name, section in data.items()}


def check_hyperparameters(values: Mapping[str, Any], algorithm: type, where: str) -> None:
    """Checks the keys and the plain types of one section.

    Args:
        values: the section.
        algorithm: the algorithm's class; its constructor's arguments are allowed keys.
        where: file and section, for errors.

    Raises:
        ValueError: an unknown or missing key, a number given as text, code given as text.
    """
    arguments = set(inspect.signature(algorithm.__init__).parameters) - {  # type: ignore[misc]
        "self",
        "env",
        "_init_setup_model",
    }
    allowed = arguments | set(ZOO_KEYS)
    for key, value in values.items():
        if key not in allowed:
            raise ValueError(f"{where}: {unknown_word('key', key, allowed)}")
        if key in MAPPINGS and not isinstance(value, Mapping):
            raise ValueError(f"{where}: {key} must be a mapping, got {value!r}")
        if key == "normalize" and not isinstance(value, (bool, Mapping)):
            raise ValueError(f"{where}: normalize must be true, false or a mapping, got {value!r}")
        if isinstance(value, str) and _is_number(value):
            raise ValueError(
                f"{where}: {key} must be a number, got the text {value!r} (YAML 1.1 reads 1e-4 as "
                "text: write 1.0e-4)"
            )
    for key in ("policy", "n_timesteps"):
        if key not in values:
            raise ValueError(f"{where}: the key {key} is missing")
    for key in COUNTS:
        value = values.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 1:
            raise ValueError(f"{where}: {key} must be a number of at least 1, got {value!r}")
        if value != int(value):
            raise ValueError(f"{where}: {key} must be whole, got {value!r}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def resolve_extractor(policy_kwargs: Mapping[str, Any], algorithm: str) -> dict[str, Any]:
    """Policy arguments in which names have become classes, as SB3's policies take them.

    A named `extractor` becomes features_extractor_class; a named activation_fn is looked up.

    DDQN's policies read the name themselves.
    """
    kwargs = dict(policy_kwargs)
    if algorithm != "ddqn" and "extractor" in kwargs:
        kwargs["features_extractor_class"] = EXTRACTORS.resolve(kwargs.pop("extractor"))
    if algorithm != "ddqn" and isinstance(kwargs.get("activation_fn"), str):
        kwargs["activation_fn"] = ACTIVATIONS.resolve(kwargs["activation_fn"])
    return kwargs
