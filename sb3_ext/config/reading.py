"""Configurations from files, dictionaries and the command line."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from sb3_ext.config.checks import shown, unknown_word
from sb3_ext.config.effects import MAX_BYTES, judge, parse_yaml
from sb3_ext.config.sections import ConfigError, Section, errors_of, read_section

_CONFIGS = (Path(__file__).parents[1] / "configs", Path(__file__).parents[2] / "configs")
"""An installed package has its configurations beside its code, a checkout at the top."""


def shipped_configs(folder: str = "") -> list[str]:
    """Return the names of the shipped files in a folder of ``configs``, sorted."""
    roots = [root / folder for root in _CONFIGS]
    found = [(root, path) for root in roots for path in root.rglob("*.yml")]
    return sorted({path.relative_to(root).with_suffix("").as_posix() for root, path in found})


def find_config(
    name: str | Path, folder: str = "", field: str = "config", *, shipped: bool = False
) -> Path:
    """Return the file of a path, or of the name of a shipped file.

    Args:
        name: with or without ``.yml`` if it comes with the package.
        folder: where it lies then, below ``configs``.
        field: what the error calls it.
        shipped: only those that come with the package.
    """
    own = [root / folder / f"{name}{end}" for root in _CONFIGS for end in ("", ".yml")]
    for path in own if shipped else (Path(name), *own):
        if os.path.isfile(path):
            return path
    if os.path.exists(name):
        raise ConfigError(f"{field}: got {shown(str(name))}; expected a regular file")
    raise ConfigError(
        f"{field}: there is no file {shown(str(name))}, and none of this name among "
        f"{', '.join(shipped_configs(folder))}"
    )


class ConfigFile(Section):
    """A section that is a whole file.

    Attributes:
        folder: where those of the package lie, below ``configs``.
    """

    folder: ClassVar[str] = ""

    @classmethod
    def read(
        cls, source: Self | Mapping[str, Any] | str | Path, settings: Sequence[str] = ()
    ) -> Self:
        """Reads and checks a configuration.

        Args:
            source: the path of a YAML file, the name of one of this package, a dictionary (which
                is not modified) or a configuration.
            settings: changes in the form ``dotted.key=value``, see `apply_settings`.

        Raises:
            ConfigError: one line that names file and field, what was given and what is allowed.
        """
        if isinstance(source, cls):
            return cls.read(source.to_dict(), settings) if settings else source
        if isinstance(source, Mapping):
            left_out = {k: None for k, each in cls.model_fields.items() if each.default is None}
            return read_section(cls, apply_settings({**left_out, **source}, settings))
        path = find_config(str(source), cls.folder)
        data = read_mapping(path)
        try:
            return cls.read(data, settings)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None

    @classmethod
    def saved(cls, data: Mapping[str, Any], file: str | Path) -> Self:
        """Return the configuration in a checkpoint, checked as one from a file of this path."""
        with errors_of(str(file)):
            judge(data, file)
            return cls.read(data)

    @classmethod
    def shipped(cls) -> list[str]:
        """Names of the files that come with the package, sorted."""
        return shipped_configs(cls.folder)


def read_mapping(path: Path) -> Mapping[str, Any]:
    """The mapping that a file holds, judged by its effects; a ConfigError begins with the path."""
    with errors_of(str(path)):
        try:
            if not os.path.isfile(path):  # a pipe or a device may never end
                raise FileNotFoundError("there is no such file")
            with open(path, encoding="utf-8") as file:
                text = file.read(MAX_BYTES + 1)
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"cannot be read: {error}") from None
        data = parse_yaml(text)
        if not isinstance(data, Mapping):
            raise ValueError(f"must hold a mapping, got {type(data).__name__}")
        judge(data, path)
    return data


def split_setting(text: str, separator: str = "=", option: str = "--set") -> tuple[str, Any]:
    """The key and the value of an argument ``key=value``, the value in YAML."""
    name, found, value = text.partition(separator)
    if not found or not name:
        raise ConfigError(
            f"{option} must have the form dotted.key{separator}value, got {shown(text)}"
        )
    with errors_of(f"{option} {name}: {shown(value)} is not a YAML value"):
        return name, parse_yaml(value)


def apply_settings(data: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Return a copy of a configuration with changed keys.

    Args:
        data: the configuration as plain data.
        settings: ``dotted.key=value`` each, the value in YAML; all but the last key have to be
            there already, if only as null.

    Raises:
        ConfigError: a setting has another form, or names an unknown section.
    """
    changed: dict[str, Any] = _unshared(data)
    for name, value in map(split_setting, settings):
        *parents, last = name.split(".")
        section: Any = changed
        for depth, key in enumerate(parents):
            if key not in section:
                where = f"key of {'.'.join(parents[:depth])}" if depth else "key"
                raise ConfigError(f"--set: {unknown_word(where, key, map(str, section))}")
            if section[key] is None:
                section[key] = {}
            section = section[key]
            if not isinstance(section, dict):
                raise ConfigError(f"--set {name}: {'.'.join(parents[: depth + 1])} has no keys")
        section[last] = value
    return changed


def _unshared(data: Any) -> Any:
    """A copy without shared parts: what YAML's anchors repeat is set in one place only."""
    if isinstance(data, Mapping):
        return {key: _unshared(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_unshared(value) for value in data]
    return copy.deepcopy(data)
