"""The settings of supervised pretraining, as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sb3_ext.config.checks import check_count, check_number
from sb3_ext.config.registry import unknown_word
from sb3_ext.schedules.schedules import parse_schedule

__all__ = ["TeachingSettings"]


@dataclass(frozen=True)
class TeachingSettings:
    """How a policy is taught.

    Attributes:
        updates: gradient updates in all.
        batch_size: positions of an update.
        learning_rate: a number or a schedule of the updates; one of the progress runs over
            ``updates``.
        temperature: values are divided by it before the softmax of the choice; above 0.
        value_weight: weight of the value beside the choice; 0 teaches the choice only.
        augment: rename the axes of every position at random, each time it is seen.
        max_grad_norm: clip the gradient's norm to this; None: never.
        validation_fraction: part of the training positions that is kept back to choose the best
            update by, above 0 and below 1. Held-out positions play no part in that.
        evaluation_updates: updates between two such measurements.
        patience: measurements without a better one after which training stops; None: never.
        checkpoint_updates: updates between two checkpoints, 0 for one at the end only.
        seed: fixes the networks, the order of the positions and the renaming.

    Raises:
        TypeError, ValueError: a setting of another type or out of its range.
    """

    updates: int = 20_000
    batch_size: int = 1024
    learning_rate: Any = "cos_1e-3_1e-5"
    temperature: float = 0.1
    value_weight: float = 0.1
    augment: bool = True
    max_grad_norm: float | None = 10.0
    validation_fraction: float = 0.02
    evaluation_updates: int = 1000
    patience: int | None = None
    checkpoint_updates: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("updates", "batch_size", "evaluation_updates"):
            object.__setattr__(self, name, check_count(name, getattr(self, name)))
        for name in ("checkpoint_updates", "seed"):
            object.__setattr__(self, name, check_count(name, getattr(self, name), low=0))
        if self.patience is not None:
            object.__setattr__(self, "patience", check_count("patience", self.patience))
        if self.max_grad_norm is not None:
            check_number("max_grad_norm", self.max_grad_norm, low=0, above=True)
        check_number("temperature", self.temperature, low=0, above=True)
        check_number("value_weight", self.value_weight, low=0)
        check_number("validation_fraction", self.validation_fraction, low=0, high=0.5, above=True)
        if not isinstance(self.augment, bool):
            raise TypeError(f"augment must be true or false, got {self.augment!r}")
        schedule = parse_schedule(self.learning_rate, "learning_rate")
        if schedule.unit == "transitions":
            raise ValueError(
                "learning_rate: must be a schedule of updates or progress, got unit 'transitions'"
            )
        lowest = schedule.bounds()[0]
        if lowest < 0:
            raise ValueError(f"learning_rate must be at least 0, got {lowest}")

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str = "train") -> TeachingSettings:
        """The settings of a section of a configuration file; what is left out has its default.

        Raises:
            TypeError, ValueError: as above, or an unknown key; one line that names the section.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        for key in values:
            if key not in known:
                raise ValueError(f"{where}: {unknown_word('key', key, known)}")
        try:
            return cls(**values)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where}: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `of` reads back."""
        return dataclasses.asdict(self)

    def rate(self, update: int) -> float:
        """The learning rate of an update, counted from 0."""
        schedule = parse_schedule(self.learning_rate, "learning_rate")
        return schedule(update / self.updates if schedule.unit == "progress" else update)
