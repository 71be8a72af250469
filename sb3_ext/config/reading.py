"""Configurations from files, dictionaries and the command line."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml

from sb3_ext.config.registry import unknown_word
from sb3_ext.config.sections import ConfigError, Section, read_section
from sb3_ext.config.yaml_files import read_yaml
from sb3_ext.two_player.config import TrainerConfig

__all__ = [
    "SectionFiles",
    "apply_settings",
    "find_config",
    "read_config",
    "shipped_configs",
    "smoke_version",
]

_CONFIGS = (Path(__file__).parents[1] / "configs", Path(__file__).parents[2] / "configs")
"""An installed package has its configurations beside its code, a checkout at the top."""

Model = TypeVar("Model", bound=Section)


@dataclass(frozen=True)
class SectionFiles(Generic[Model]):
    """YAML files of one kind of configuration.

    Attributes:
        model: what a file is read to.
        folder: where those of the package lie, below ``configs``.
        field: what messages call the argument.
        kind: what messages call a file.
    """

    model: type[Model]
    folder: str
    field: str
    kind: str

    def names(self) -> list[str]:
        """Names of the files that come with the package, sorted."""
        return sorted(
            {path.stem for root in _CONFIGS for path in (root / self.folder).glob("*.yml")}
        )

    def find(self, name: str | Path) -> Path:
        """The file of a path, or of the name of one that comes with the package.

        Raises:
            ConfigError: there is none.
        """
        for path in (Path(name), *(root / self.folder / f"{name}.yml" for root in _CONFIGS)):
            if path.is_file():
                return path
        raise ConfigError(
            f"{self.field}: there is no file {str(name)!r}, and no {self.kind} of this name among "
            f"{', '.join(self.names())}"
        )

    def read(
        self, source: Model | Mapping[str, Any] | str | Path, settings: Sequence[str] = ()
    ) -> Model:
        """Reads and checks a configuration.

        Args:
            source: the path of a YAML file, the name of one of this package, a dictionary (which
                is not modified) or a configuration.
            settings: changes in the form ``dotted.key=value``, see `apply_settings`.

        Raises:
            ConfigError: one line that names file and field, what was given and what is allowed.
        """
        if isinstance(source, self.model):
            return self.read(source.to_dict(), settings) if settings else source
        if isinstance(source, Mapping):
            return read_section(self.model, apply_settings(source, settings))
        if not isinstance(source, (str, Path)):
            raise ConfigError(
                f"{self.field} must be a path, a name, a dictionary or of {self.model.__name__}, "
                f"got {source!r}"
            )
        path = self.find(source)
        try:
            data = read_yaml(path)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        if not isinstance(data, Mapping):
            raise ConfigError(f"{path}: must hold a mapping, got {type(data).__name__}")
        try:
            return self.read(data, settings)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None


_FILES = SectionFiles(TrainerConfig, "two_player", "config", "configuration")

shipped_configs = _FILES.names
find_config = _FILES.find
read_config = _FILES.read


def apply_settings(data: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """A copy of a configuration in which some keys have other values.

    Args:
        data: the configuration as plain data.
        settings: ``dotted.key=value`` each, the value in YAML; the key must be there already.

    Raises:
        ConfigError: a setting is of another form, or names a key that is not there.
    """
    changed: dict[str, Any] = _unshared(data)
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator or not name:
            raise ConfigError(f"--set must have the form dotted.key=value, got {setting!r}")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            raise ConfigError(f"--set {name}: {text!r} is no YAML value") from None
        *parents, last = name.split(".")
        section: Any = changed
        for depth, key in enumerate(parents):
            section = _inner(section, key, parents[:depth])
            if not isinstance(section, dict):
                raise ConfigError(f"--set {name}: {'.'.join(parents[: depth + 1])} has no keys")
        _inner(section, last, parents)
        section[last] = value
    return changed


def _unshared(data: Any) -> Any:
    """A copy without shared parts: what YAML's anchors repeat is set in one place only."""
    if isinstance(data, Mapping):
        return {key: _unshared(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_unshared(value) for value in data]
    return copy.deepcopy(data)


def _inner(section: dict[str, Any], key: str, parents: Sequence[str]) -> Any:
    if key not in section:
        where = f"key of {'.'.join(parents)}" if parents else "key"
        raise ConfigError(f"--set: {unknown_word(where, key, section)}")
    return section[key]


def smoke_version(config: TrainerConfig) -> TrainerConfig:
    """The same experiment made as short as possible: every part runs once, in seconds."""
    data = config.to_dict()
    data["training"]["steps"] = 4
    data["evaluation"] |= {"every_steps": 2, "games": 16, "max_moves": 20, "action_games": 8}
    data["logging"]["every_steps"] = 2
    if data["checkpoint"] is not None:
        data["checkpoint"]["every_steps"] = 2
    if data["self_play"] is not None:
        data["self_play"] |= {"save_steps": 1, "swap_steps": 1, "rating_games": 8}
        data["self_play"]["team_change"] = min(data["self_play"]["team_change"], 1)
    for role in data["roles"].values():
        if role["player"] == "trained":
            rollout = role["rollout"]
            rollout |= {
                "rollout_size": 4,
                "max_rollout_steps": min(rollout["max_rollout_steps"], 5),
            }
            if "batch_size" in role:
                role["batch_size"] = min(role["batch_size"], 16)
            if "replay_buffer" in role:
                role["target_update"]["every_updates"] = 2
                role["replay_buffer"]["size"] = min(role["replay_buffer"]["size"], 10_000)
                rollout |= {"initial_rollout_size": 4, "every_updates": 2}
    return read_config(data)
