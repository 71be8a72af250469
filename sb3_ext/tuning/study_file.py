"""The file of a study: what is tuned, in which ranges, by which sampler and pruner of Optuna."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import optuna
from annotated_types import Le, Len
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from pydantic import Field, model_validator

from sb3_ext.config.arguments import from_data
from sb3_ext.config.checks import check_number, shown
from sb3_ext.config.reading import ConfigFile, with_values
from sb3_ext.config.registry import Registry
from sb3_ext.config.sections import (
    ConfigError,
    Count,
    Name,
    PositiveCount,
    Section,
    Version,
    checked,
    errors_of,
    read_section,
)
from sb3_ext.tuning.targets import TARGETS, Target

SAMPLERS: Registry[type[BaseSampler]] = Registry("sampler")
SAMPLERS.register("random", optuna.samplers.RandomSampler)
SAMPLERS.register("tpe", optuna.samplers.TPESampler)

PRUNERS: Registry[type[BasePruner]] = Registry("pruner")
PRUNERS.register("halving", optuna.pruners.SuccessiveHalvingPruner)
PRUNERS.register("hyperband", optuna.pruners.HyperbandPruner)
PRUNERS.register("median", optuna.pruners.MedianPruner)
PRUNERS.register("none", optuna.pruners.NopPruner)
PRUNERS.register("percentile", optuna.pruners.PercentilePruner)
PRUNERS.register("threshold", optuna.pruners.ThresholdPruner)


def _as_written(value: Any) -> Any:
    check_number("", value)
    return value


_Bound = Annotated[Any, checked(_as_written)]


class Range(Section):
    """Numbers from ``low`` to ``high``, both included; whole ones if all that is given is whole."""

    low: _Bound
    high: _Bound
    log: bool = False
    step: _Bound | None = None

    @model_validator(mode="after")
    def _fits(self) -> Range:
        if self.low >= self.high:
            raise ValueError(f".high must be above low, got {self.low} and {self.high}")
        if self.log and (self.low <= 0 or self.step is not None):
            raise ValueError(".log: true needs low above 0 and no step")
        if self.step is not None and not 0 < self.step <= self.high - self.low:
            raise ValueError(f".step must be above 0 and at most high - low, got {self.step}")
        return self

    @property
    def first(self) -> Any:
        """A value that is allowed."""
        return self.low

    def suggest(self, trial: optuna.Trial, name: str) -> Any:
        """The value of a trial."""
        bounds = (self.low, self.high)
        if all(isinstance(each, int) for each in (*bounds, self.step or 1)):
            return trial.suggest_int(name, *bounds, log=self.log, step=self.step or 1)
        return trial.suggest_float(name, *bounds, log=self.log, step=self.step)


class Choices(Section):
    """One of several values; lists and mappings are shown and kept as JSON."""

    choices: Annotated[list[Any], Len(2)]

    @model_validator(mode="after")
    def _differ(self) -> Choices:
        if len(set(map(json.dumps, self.choices))) < len(self.choices):
            raise ValueError(f".choices must differ from each other, got {shown(self.choices)}")
        return self

    @property
    def first(self) -> Any:
        """A value that is allowed."""
        return self.choices[0]

    def suggest(self, trial: optuna.Trial, name: str) -> Any:
        """The value of a trial."""
        shown = [json.dumps(v) if isinstance(v, (dict, list)) else v for v in self.choices]
        return self.choices[shown.index(trial.suggest_categorical(name, shown))]


def _read_search(data: Any) -> Any:
    if not isinstance(data, Mapping) or not data:
        raise ValueError(
            " must be a mapping from dotted keys to {low, high} or {choices}, got "
            f"{shown(data)}"
        )
    return {
        str(name): each
        if isinstance(each, (Range, Choices))
        else read_section(
            Choices if isinstance(each, Mapping) and "choices" in each else Range,
            each,
            f"search.{name}",
        )
        for name, each in data.items()
    }


def _read_target(data: Any) -> Any:
    if isinstance(data, Target):
        return data
    if not isinstance(data, Mapping) or "command" not in data:
        raise ValueError(
            f" must be a mapping with the key command ({', '.join(TARGETS)}), got {shown(data)}"
        )
    with errors_of(".command", ValueError):
        kind = TARGETS.resolve(data["command"])
    return read_section(kind, data, "target")


def _read_sampler(data: Any) -> Any:
    if isinstance(data, Mapping) and "seed" in data:
        raise ValueError(f".seed: is the key seed of the study, got {shown(data['seed'])}")
    from_data(SAMPLERS, "name", data)
    return data


def _read_pruner(data: Any) -> Any:
    from_data(PRUNERS, "name", data)
    return data


class StudyConfig(ConfigFile):
    """A whole study."""

    folder: ClassVar[str] = "tune"
    field: ClassVar[str] = "study"

    config_version: Version
    name: Name = Field(description="name of the study in its storage")
    target: Annotated[Any, checked(_read_target)] = Field(
        description="the command, its configuration and what is measured"
    )
    settings: dict[str, Any] = Field(
        {}, description="dotted keys of the configuration with the same value in every trial"
    )
    direction: Literal["maximize", "minimize"] = Field(description="what is better")
    search: Annotated[Any, checked(_read_search)] = Field(
        description="dotted keys of the configuration, each with a range or choices"
    )
    trials: PositiveCount = Field(description="trials of all workers together")
    sampler: Annotated[Any, checked(_read_sampler)] = Field(
        description="name of one of Optuna's samplers, with its arguments"
    )
    pruner: Annotated[Any, checked(_read_pruner)] = Field(
        description="name of one of Optuna's pruners, with its arguments"
    )
    seed: Annotated[Count, Le(2**32 - 1)] = Field(description="fixes what is tried")

    @model_validator(mode="after")
    def _parts_fit(self) -> StudyConfig:
        if both := self.settings.keys() & self.search.keys():
            raise ValueError(f".settings: {min(both)} is a key of search, too")
        first = {name: each.first for name, each in self.search.items()}
        # A key that does not exist or a wrong type is found now, not in every trial.
        try:
            self.target.check(self.values(first))
        except (TypeError, ValueError) as error:
            raise ConfigError(f"settings, search or target.config: {error}") from None
        return self

    def values(self, searched: Mapping[str, Any]) -> dict[str, Any]:
        """The configuration with these values for the keys of ``search``."""
        data = with_values(self.target.read(), self.settings.items(), "settings")
        return with_values(data, searched.items(), "search")

    def suggest(self, trial: Any) -> dict[str, Any]:
        """The configuration of a trial; that of a finished one is the same again."""
        return self.values({key: each.suggest(trial, key) for key, each in self.search.items()})

    def identity(self) -> dict[str, Any]:
        """What all workers of a study must agree on, as plain data."""
        plain = self.model_dump(mode="json", exclude={"name", "trials"})
        plain |= {"target": self.target.model_dump(mode="json")}
        search = {name: each.model_dump(mode="json") for name, each in self.search.items()}
        return {**plain, "search": search}

    def make_sampler(self, seed: int) -> BaseSampler:
        """The sampler with a seed."""
        arguments = {key: value for key, value in self.sampler.items() if key != "name"}
        return SAMPLERS.resolve(self.sampler["name"])(**arguments, seed=seed)  # type: ignore[call-arg]

    def make_pruner(self) -> BasePruner:
        """The pruner."""
        return from_data(PRUNERS, "name", self.pruner)
