"""The files of the commands train, run and robust: what they declare, and how they are changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le, Len
from pydantic import BeforeValidator, model_validator

from resgym.game.spec import GameSpec
from resgym.polynomials.starts import resolve_starts
from sb3_ext.config.checks import check_number
from sb3_ext.config.reading import ConfigFile, apply_settings, find_config, read_mapping
from sb3_ext.config.sections import (
    ConfigError,
    Count,
    Fraction,
    Number,
    PositiveCount,
    PositiveNumber,
    Section,
    Size,
    Whole,
    errors_of,
    read_section,
)
from sb3_ext.networks.fields import schedule_field
from sb3_ext.schedules.schedules import parse_schedule
from sb3_ext.studies.teach.drawing import Plan
from sb3_ext.studies.teach.families import TeachConfig

PARTS = ("teacher", "mixture", "augmentation")
"""What ``--without`` leaves out of the command robust."""


class TeachingSettings(Section):
    """How a policy is taught.

    Attributes:
        updates: gradient updates in all.
        batch_size: positions of an update.
        learning_rate: number or schedule; one of the progress runs over all updates.
        temperature: values are divided by it before the softmax of the choice.
        value_weight: weight of the value beside the choice; 0 teaches the choice only.
        augment: rename the axes of every position at random, each time it is seen.
        max_grad_norm: the gradient is clipped to this norm; None: never.
        validation_fraction: part of the training positions that is kept back to choose the best
            update by; held-out positions play no part in that.
        evaluation_updates: updates between two such measurements.
        patience: measurements without a better one after which training stops; None: never.
        checkpoint_updates: updates between two checkpoints, 0 for one at the end only.
        seed: fixes the networks, the order of the positions and the renaming.
    """

    updates: PositiveCount = 20_000
    batch_size: Size = 1024
    learning_rate: Annotated[Any, schedule_field(units=("updates", "progress"), unit=None)] = (
        "cos_1e-3_1e-5"
    )
    temperature: PositiveNumber = 0.1
    value_weight: Annotated[float, Number, Ge(0)] = 0.1
    augment: bool = True
    max_grad_norm: PositiveNumber | None = 10.0
    validation_fraction: Annotated[float, Number, Gt(0), Le(0.5)] = 0.02
    evaluation_updates: PositiveCount = 1000
    patience: PositiveCount | None = None
    checkpoint_updates: Count = 1000
    seed: Count = 0

    def rate(self, update: int) -> float:
        """The learning rate of an update, counted from 0."""
        schedule = parse_schedule(self.learning_rate, "learning_rate")
        return schedule(update / self.updates if schedule.unit == "progress" else update)


def read_settings(config: str | Path, changes: Sequence[str] = ()) -> TeachingSettings:
    """The section ``train`` of a file, with changes ``key=value``.

    Raises:
        ConfigError: one line.
    """
    values = read_mapping(find_config(config)).get("train", {})
    if isinstance(values, Mapping):
        values = apply_settings(values, changes)
    return read_section(TeachingSettings, values, "train")


class _Algorithm(Section):
    file: str


class _Measure(Section):
    larger: Count = 300
    brieskorn_pham: Annotated[Count, Le(100)] = 9
    label_budget: PositiveCount = 300_000
    games: Annotated[Count, Le(2**20)] = 4000
    max_depth: PositiveCount = 40
    starts: str | None = None


class _Rounds(Section):
    """Further trainings, each with more positions, drawn with the player of the one before.

    ``config`` are their families, or a file of these, which call it ``student``;
    ``positions`` are drawn anew for every round.
    """

    count: Annotated[int, Whole, Ge(0), Le(100)]
    config: Annotated[TeachConfig, BeforeValidator(lambda given: TeachConfig.read(given))]
    positions: PositiveCount


class TaughtConfig(ConfigFile):
    """A file of the command run.

    ``algorithm.file`` is in rl_zoo3's form; for the keys of ``measure`` see `host_test`,
    `measure_host` and, of which ``games`` and ``starts`` are for agents too, `measure_agent`.
    """

    algorithm: _Algorithm
    data: Plan
    measure: _Measure
    train: TeachingSettings
    rounds: _Rounds | None = None

    @model_validator(mode="after")
    def _rounds_fit(self) -> TaughtConfig:
        if self.measure.games:
            with errors_of(".measure.starts", ValueError):
                resolve_starts(self.measure.starts, GameSpec(self.data.config.dimension))
        if self.rounds is None:
            return self
        given, wanted = self.rounds.config.dimension, self.data.config.dimension
        if given != wanted:
            raise ValueError(f".rounds.config.dimension: must be {wanted} as in data, got {given}")
        if self.rounds.config.student_seat != self.data.seat:
            raise ValueError(f".rounds.config: no family plays with the {self.data.seat} student")
        return self

    def plan(self, number: int, student: Path | None) -> Plan:
        """What is drawn for a round, counted from 0."""
        if not number:
            return self.data
        assert self.rounds
        own = {"config": self.rounds.config, "positions": self.rounds.positions}
        seed = self.data.seed + number
        return Plan.read({**self.data.to_dict(), **own, "seed": seed, "student": student})


class _LongAlgorithm(_Algorithm):
    updates: PositiveCount
    checkpoint_updates: Count
    seed: Count


class _RobustData(Section):
    config: str
    positions: PositiveCount
    held_out: Fraction
    seed: Count


class _Teacher(Section):
    weight: PositiveNumber
    batch_size: Size
    temperature: PositiveNumber
    augment: bool
    families: list[str] | None
    seed: Count


class _Evaluation(Section):
    targets: Annotated[dict[str, PositiveNumber], Len(1)]
    deeper: Count
    average: Fraction
    updates: PositiveCount
    games: Size
    seed: Count
    test_games: Size
    test_seed: Count


class RobustConfig(ConfigFile):
    """A file of the command robust; every key must be there.

    For the keys of ``teacher`` see `Teacher`, for those of ``evaluation`` `RobustEvaluation`.
    ``opponents`` are names or paths of saved models, with their weights.
    """

    algorithm: _LongAlgorithm
    data: _RobustData
    teacher: _Teacher
    opponents: Annotated[dict[str, PositiveNumber], Len(1)]
    evaluation: _Evaluation


def read_robust_config(
    source: str | Path,
    changes: Sequence[str] = (),
    opponents: Sequence[str] = (),
    without: Sequence[str] = (),
) -> RobustConfig:
    """The settings of a file, changed by the options of the command robust.

    Raises:
        ConfigError: one line that names the field.
    """
    config = RobustConfig.read(source, changes)
    mixture = dict(config.opponents)
    for text in opponents:
        name, _, weight = text.rpartition("=")
        try:
            mixture[name] = check_number("", float(weight), low=0, above=True)
        except ValueError:
            name = ""
        if not name:
            raise ConfigError(f"opponent: must be PLAYER=WEIGHT, got {text!r}")
    if "mixture" in without:
        mixture = {next(iter(mixture)): 1.0}
    augment = config.teacher.augment and "augmentation" not in without
    teacher = config.teacher.model_copy(update={"augment": augment})
    return config.model_copy(update={"opponents": mixture, "teacher": teacher})
