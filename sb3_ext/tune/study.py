"""The file of a study: target, ranges, and Optuna's sampler and pruner."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import optuna
from annotated_types import Le, Len
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler, RandomSampler
from pydantic import model_validator

from sb3_ext.config.checks import Registry
from sb3_ext.config.reading import ConfigFile
from sb3_ext.config.sections import (
    Count,
    Name,
    PositiveCount,
    Section,
    accepted_by,
    errors_of,
    from_data,
)

SAMPLERS: Registry[type[BaseSampler]] = Registry("sampler")
PRUNERS: Registry[type[BasePruner]] = Registry("pruner")
SAMPLERS.update(random=RandomSampler, tpe=optuna.samplers.TPESampler)
PRUNERS.update(
    halving=optuna.pruners.SuccessiveHalvingPruner,
    median=optuna.pruners.MedianPruner,
    none=optuna.pruners.NopPruner,
)


class Target(Section):
    """A command, its configuration, and the other options that it needs."""

    command: str
    config: str
    player: str | None = None
    role: Literal["host", "agent"] | None = None
    algo: str | None = None
    env: str | None = None

    def words(self, file: str) -> list[str]:
        """Its command line, with this configuration."""
        name = {"attack": "budget", "train": "conf-file"}.get(self.command, "config")
        given = {name: file, "role": self.role, "algo": self.algo, "env": self.env}
        words = [f"--{name}={value}" for name, value in given.items() if value is not None]
        return words if self.player is None else [*words, "--", self.player]


class StudyConfig(ConfigFile):
    """A whole study."""

    folder: ClassVar[str] = "tune"
    field: ClassVar[str] = "study"

    name: Name
    """name of the study in its storage"""
    target: Target
    """the command, its configuration and options"""
    value: Annotated[list[str], Len(1)]
    """metrics of the command; the worst of them counts"""
    settings: dict[str, Any] = {}  # noqa: RUF012
    """dotted keys of the configuration with the same value in every trial"""
    direction: Literal["maximize", "minimize"]
    """larger or smaller values are better"""
    search: Annotated[dict[str, Any], Len(1)]
    """dotted keys of the configuration, each with a range or choices"""
    trials: PositiveCount
    """trials of all workers together"""
    sampler: Annotated[dict[str, Any], accepted_by(partial(from_data, SAMPLERS, "name"))]
    """name of one of Optuna's samplers, with its arguments"""
    pruner: Annotated[dict[str, Any], accepted_by(partial(from_data, PRUNERS, "name"))]
    """name of one of Optuna's pruners, with its arguments"""
    seed: Annotated[Count, Le(2**32 - 1)]
    """seed of the sampled values"""

    @model_validator(mode="after")
    def _fits(self) -> StudyConfig:
        if both := self.settings.keys() & self.search.keys():
            raise ValueError(f".settings: {min(both)} is a key of search, too")
        self.some()
        return self

    def some(self) -> dict[str, Any]:
        """The searched keys with values that are allowed."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        return self.suggest(optuna.create_study(sampler=RandomSampler(self.seed)).ask())

    def suggest(self, trial: Any) -> dict[str, Any]:
        """The searched keys of a trial; those of a finished one are the same again."""
        found = {}
        for name, each in self.search.items():
            with errors_of(f"search.{name}"):
                found[name] = _suggested(trial, name, **each)
        return found

    def worst(self, measured: Mapping[str, float]) -> float:
        """The value of a trial that measured all it should."""
        return (min if self.direction == "maximize" else max)(measured[n] for n in self.value)

    def make_sampler(self, trial: int) -> Any:
        """A sampler whose draws depend on the seed and the number of the trial alone."""
        words = np.random.SeedSequence([self.seed, trial]).generate_state(1)
        return from_data(SAMPLERS, "name", {**self.sampler, "seed": int(words[0])})


def _suggested(trial: Any, name: str, choices: Any = None, **bounds: Any) -> Any:
    """A value from a range, whole if all given numbers are whole, or one of several.

    Lists and mappings are shown and kept as JSON.
    """
    if choices is None:
        whole = all(isinstance(each, int) for each in bounds.values())
        return (trial.suggest_int if whole else trial.suggest_float)(name, **bounds)
    shown = [json.dumps(v) if isinstance(v, (dict, list)) else v for v in choices]
    return choices[shown.index(trial.suggest_categorical(name, shown))]
