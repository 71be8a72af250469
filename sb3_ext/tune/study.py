"""The file of a study: target, ranges, and Optuna's sampler and pruner."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import optuna
from annotated_types import Le, Len
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from pydantic import Field, model_validator

from sb3_ext.config.checks import check_number, shown
from sb3_ext.config.reading import ConfigFile
from sb3_ext.config.registry import Registry
from sb3_ext.config.sections import (
    Count,
    Name,
    PositiveCount,
    Section,
    accepted_by,
    checked,
    from_data,
    read_section,
)

SAMPLERS: Registry[type[BaseSampler]] = Registry("sampler")
PRUNERS: Registry[type[BasePruner]] = Registry("pruner")
SAMPLERS.update(random=optuna.samplers.RandomSampler, tpe=optuna.samplers.TPESampler)
PRUNERS.update(
    halving=optuna.pruners.SuccessiveHalvingPruner,
    hyperband=optuna.pruners.HyperbandPruner,
    median=optuna.pruners.MedianPruner,
    none=optuna.pruners.NopPruner,
    percentile=optuna.pruners.PercentilePruner,
    threshold=optuna.pruners.ThresholdPruner,
)

_Bound = Annotated[Any, checked(lambda value: (check_number("", value), value)[1])]
"""A number; whole numbers stay whole."""


class Range(Section):
    """Numbers from ``low`` to ``high``, inclusive; whole if all given numbers are whole."""

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

    def suggest(self, trial: Any, name: str) -> Any:
        """The value of a trial."""
        whole = all(isinstance(each, int) for each in (self.low, self.high, self.step or 1))
        draw = trial.suggest_int if whole else trial.suggest_float
        more = {} if self.step is None else {"step": self.step}
        return draw(name, self.low, self.high, log=self.log, **more)


class Choices(Section):
    """One of several values; lists and mappings are shown and kept as JSON."""

    choices: Annotated[list[Any], Len(2)]

    def suggest(self, trial: Any, name: str) -> Any:
        """The value of a trial."""
        shown = [json.dumps(v) if isinstance(v, (dict, list)) else v for v in self.choices]
        return self.choices[shown.index(trial.suggest_categorical(name, shown))]


def _read_search(data: Any) -> Any:
    if not isinstance(data, Mapping) or not data:
        raise ValueError(f": got {shown(data)}; expected dotted keys with {{low, high}} each")
    found = {}
    for name, each in data.items():
        given = each.to_dict() if isinstance(each, Section) else each
        kind = Choices if isinstance(given, Mapping) and "choices" in given else Range
        found[str(name)] = read_section(kind, given, f"search.{name}")
    return found


class Target(Section):
    """A command, its configuration, and the other options that it needs."""

    command: str
    config: str
    player: str | None = None
    role: Literal["host", "agent"] | None = None
    algo: str | None = None
    env: str | None = None


class StudyConfig(ConfigFile):
    """A whole study."""

    folder: ClassVar[str] = "tune"
    field: ClassVar[str] = "study"

    name: Name = Field(description="name of the study in its storage")
    target: Target = Field(description="the command, its configuration and options")
    value: Annotated[list[str], Len(1)] = Field(
        description="metrics of the command; the worst of them counts"
    )
    settings: dict[str, Any] = Field(
        {}, description="dotted keys of the configuration with the same value in every trial"
    )
    direction: Literal["maximize", "minimize"] = Field(
        description="larger or smaller values are better"
    )
    search: Annotated[Any, checked(_read_search)] = Field(
        description="dotted keys of the configuration, each with a range or choices"
    )
    trials: PositiveCount = Field(description="trials of all workers together")
    sampler: Annotated[
        dict[str, Any], accepted_by(lambda data: from_data(SAMPLERS, "name", data))
    ] = Field(description="name of one of Optuna's samplers, with its arguments")
    pruner: Annotated[
        dict[str, Any], accepted_by(lambda data: from_data(PRUNERS, "name", data))
    ] = Field(description="name of one of Optuna's pruners, with its arguments")
    seed: Annotated[Count, Le(2**32 - 1)] = Field(description="seed of the sampled values")

    @model_validator(mode="after")
    def _parts_fit(self) -> StudyConfig:
        if both := self.settings.keys() & self.search.keys():
            raise ValueError(f".settings: {min(both)} is a key of search, too")
        if "seed" in self.sampler:
            raise ValueError(".sampler.seed: is the key seed of the study")
        return self

    def first(self) -> dict[str, Any]:
        """The searched keys with values that are allowed."""
        return {
            key: each.low if isinstance(each, Range) else each.choices[0]
            for key, each in self.search.items()
        }

    def suggest(self, trial: Any) -> dict[str, Any]:
        """The searched keys of a trial; those of a finished one are the same again."""
        return {key: each.suggest(trial, key) for key, each in self.search.items()}

    def worst(self, measured: Mapping[str, float]) -> float:
        """The value of a trial that measured all it should."""
        return (min if self.direction == "maximize" else max)(measured[n] for n in self.value)

    def make_sampler(self) -> Any:
        """A sampler whose draws depend on the seed and the number of the trial alone."""
        arguments = {key: value for key, value in self.sampler.items() if key != "name"}
        kind: Any = SAMPLERS.resolve(self.sampler["name"])
        return _SeededByTrial(lambda seed: kind(**arguments, seed=seed), self.seed)


class _SeededByTrial:
    """A new sampler for every trial: workers draw different numbers.

    A continued study gives the same trials as one that was not stopped.
    """

    def __init__(self, make: Callable[[int], BaseSampler], seed: int) -> None:
        self._make, self._seed = make, seed
        self._sampler = make(seed)

    def before_trial(self, study: Any, trial: Any) -> None:
        words = np.random.SeedSequence([self._seed, trial.number]).generate_state(1)
        self._sampler = self._make(int(words[0]))
        self._sampler.before_trial(study, trial)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sampler, name)
