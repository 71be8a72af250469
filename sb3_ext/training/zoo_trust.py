"""rl_zoo3 and SB3 without the code that files name: what replaces `eval`, imports and pickles.

Without ``--trust`` these names are replaced while one of rl_zoo3's commands runs (2.9.2):

    exp_manager.eval, utils.eval      `plain_value`: dict(...) of literals, names of replay buffers
    utils.importlib                   `known_class`, for callbacks, wrappers and policies
    *.yaml                            the reader of configurations
    save_util.json_to_data            `read_zip_data`: models
    save_util.pickle, vec_normalize.pickle   `read_pickle`: replay buffers and statistics
"""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import rl_zoo3.exp_manager
import rl_zoo3.utils
import yaml
from stable_baselines3.common import save_util
from stable_baselines3.common.vec_env import vec_normalize

from sb3_ext.config.yaml_files import parse_yaml
from sb3_ext.training.trust import known_class, plain_value, read_pickle, read_zip_data

__all__ = ["SAFE_YAML", "plain_data_only"]

SAFE_YAML = SimpleNamespace(
    UnsafeLoader=yaml.SafeLoader,
    SafeLoader=yaml.SafeLoader,
    YAMLError=yaml.YAMLError,
    safe_load=lambda stream: parse_yaml(stream.read()),
    load=lambda stream, Loader=None: parse_yaml(stream.read()),
    dump=yaml.safe_dump,
)


class _KnownModule:
    """What rl_zoo3 takes for a module: its classes are looked up when they are asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> type:
        return known_class(f"{self._name}.{attribute}")


def plain_data_only(module: Any) -> list[Any]:
    """The patches, not started, for one of rl_zoo3's modules and all that it uses."""
    pickles = SimpleNamespace(
        load=read_pickle, dump=pickle.dump, HIGHEST_PROTOCOL=pickle.HIGHEST_PROTOCOL
    )
    patches: list[Any] = [
        patch.object(rl_zoo3.exp_manager, "eval", plain_value, create=True),
        patch.object(rl_zoo3.utils, "eval", plain_value, create=True),
        patch.object(rl_zoo3.utils, "importlib", SimpleNamespace(import_module=_KnownModule)),
        patch.object(rl_zoo3.utils, "yaml", SAFE_YAML),
        patch.object(save_util, "json_to_data", read_zip_data),
        patch.object(save_util, "pickle", pickles),
        patch.object(vec_normalize, "pickle", pickles),
    ]
    if module is not rl_zoo3.utils and hasattr(module, "yaml"):
        patches.append(patch.object(module, "yaml", SAFE_YAML))
    return patches
