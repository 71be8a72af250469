"""The settings of the command robust: what its file declares, and how it is read and changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from sb3_ext.config.registry import unknown_word
from sb3_ext.config.sections import (
    ConfigError,
    Count,
    Fraction,
    PositiveCount,
    PositiveNumber,
    Section,
    read_section,
)
from sb3_ext.config.yaml_files import read_yaml
from sb3_ext.studies.teach.train import find_config

__all__ = ["PARTS", "RobustConfig", "read_robust_config"]

PARTS = ("teacher", "mixture", "augmentation")
"""What ``--without`` leaves out."""


class _Algorithm(Section):
    """The section ``algorithm``: a file in rl_zoo3's form, and the length of the run."""

    file: str
    updates: PositiveCount
    checkpoint_updates: Count
    seed: Count


class _Data(Section):
    """The section ``data``: see `Plan`, which checks the ranges."""

    config: str
    positions: PositiveCount
    held_out: Fraction
    seed: Count


class _Teacher(Section):
    """The section ``teacher``: see `Teacher`."""

    weight: PositiveNumber
    batch_size: PositiveCount
    temperature: PositiveNumber
    augment: bool
    families: list[str] | None
    seed: Count


class _Evaluation(Section):
    """The section ``evaluation``: see `RobustEvaluation`."""

    targets: dict[str, PositiveNumber]
    deeper: Count
    average: Fraction
    updates: PositiveCount
    games: PositiveCount
    seed: Count
    test_games: PositiveCount
    test_seed: Count


class RobustConfig(Section):
    """A whole file; every key must be there.

    Attributes:
        opponents: who is trained against: names or paths of saved models, and their weights.
    """

    algorithm: _Algorithm
    data: _Data
    teacher: _Teacher
    opponents: dict[str, PositiveNumber]
    evaluation: _Evaluation


def read_robust_config(
    path: str | Path,
    changes: Sequence[str] = (),
    opponents: Sequence[str] = (),
    without: Sequence[str] = (),
    seed: int | None = None,
) -> RobustConfig:
    """The settings of a file, changed.

    Args:
        path: the file.
        changes: ``section.key=value``.
        opponents: ``player=weight``, added to the mixture.
        without: of `PARTS`; the network's mirror is no part of this file.
        seed: instead of ``algorithm.seed``.

    Raises:
        ValueError: one line that names the field.
    """
    file = find_config(path)
    if not file.is_file():
        raise ValueError(f"config: no such file {file}")
    values = read_yaml(file)
    try:
        for change in changes:
            _change(values, change)
    except yaml.YAMLError as error:
        raise ValueError(f"set: {change} is not readable as plain YAML") from error
    if not isinstance(values, dict):
        raise ValueError(f"{file}: must be a mapping, got {values!r:.40}")
    if seed is not None:
        _change(values, f"algorithm.seed={seed}")
    for text in opponents:
        name, _, weight = text.rpartition("=")
        try:
            values["opponents"] = {**values["opponents"], name: float(weight)}
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"opponent: must be PLAYER=WEIGHT, got {text!r}") from None
        if not name:
            raise ValueError(f"opponent: must be PLAYER=WEIGHT, got {text!r}")
    try:
        config = read_section(RobustConfig, values)
    except ConfigError as error:
        raise ValueError(f"{file}: {error}") from None
    for name in ("opponents", "evaluation.targets"):
        if not (config.opponents if name == "opponents" else config.evaluation.targets):
            raise ValueError(f"{file}: {name} must have at least one player, got none")
    if "mixture" in without:
        first = next(iter(config.opponents))
        config = config.model_copy(update={"opponents": {first: 1.0}})
    if "augmentation" in without:
        teacher = config.teacher.model_copy(update={"augment": False})
        config = config.model_copy(update={"teacher": teacher})
    return config


def _change(values: Any, change: str) -> None:
    key, equals, text = change.partition("=")
    *sections, last = key.split(".")
    if not equals or not last:
        raise ValueError(f"set: must be KEY=VALUE, got {change!r}")
    inside = values
    for name in sections:
        if not isinstance(inside, dict) or name not in inside:
            known = list(inside) if isinstance(inside, dict) else []
            raise ValueError(f"set: {unknown_word('section', name, known)}")
        inside = inside[name]
    if not isinstance(inside, dict):
        raise ValueError(f"set: {key} names no setting")
    inside[last] = yaml.safe_load(text)
