"""rl_zoo3 and SB3 (2.9.2) without the code that files name, for commands without ``--trust``."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import rl_zoo3.exp_manager
import rl_zoo3.utils
import yaml
from stable_baselines3.common import save_util
from stable_baselines3.common.vec_env import vec_normalize

from sb3_ext.config.yaml_files import parse_yaml
from sb3_ext.training.trust import known_class, plain_value, read_pickle, read_zip_data

SAFE_YAML = SimpleNamespace(
    UnsafeLoader=yaml.SafeLoader,
    safe_load=lambda stream: parse_yaml(stream.read()),
    load=lambda stream, Loader=None: parse_yaml(stream.read()),
    dump=lambda data, stream: yaml.safe_dump(dict(data), stream),
)


class _KnownModule:
    """What rl_zoo3 takes for a module: its classes are looked up when they are asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> type:
        return known_class(f"{self._name}.{attribute}")


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Another value for a name of a module or class meanwhile; one that it lacks goes again."""
    had, before = name in vars(owner), vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if had:
            setattr(owner, name, before)
        else:
            delattr(owner, name)


def plain_data_only(module: Any) -> list[tuple[Any, str, Any]]:
    """What to replace for one of rl_zoo3's modules and all that it uses: owner, name, value.

    `eval`, imports, YAML, and the pickles of models, replay buffers and statistics.
    """
    pickles = SimpleNamespace(
        load=read_pickle, dump=pickle.dump, HIGHEST_PROTOCOL=pickle.HIGHEST_PROTOCOL
    )
    return [
        (rl_zoo3.exp_manager, "eval", plain_value),
        (rl_zoo3.utils, "eval", plain_value),
        (rl_zoo3.utils, "importlib", SimpleNamespace(import_module=_KnownModule)),
        (rl_zoo3.utils, "yaml", SAFE_YAML),
        (save_util, "json_to_data", read_zip_data),
        (save_util, "pickle", pickles),
        (vec_normalize, "pickle", pickles),
        (module, "yaml", SAFE_YAML),
        (yaml, "UnsafeLoader", yaml.SafeLoader),  # for scripts, which import it anew
    ]
