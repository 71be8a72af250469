"""Which of the games that are played become experience, and how many moves are played at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sb3_ext.config.arguments import check_arguments
from sb3_ext.config.checks import check_count, check_number, shown


@dataclass(frozen=True)
class SamplingConfig:
    """How experience is sampled; an epoch is one collection and the updates that follow it.

    Attributes:
        num_epoch_samples: Transitions of an epoch, at least; it ends with the parallel step (from
            actors: with the chunk) that completes them.
        min_batch_size: Least number of games in which the network is asked at once.
        max_batch_size: Greatest such number; None: all rows of an environment.
        max_wait_time: Seconds after which an epoch ends with what there is, if that is anything;
            None: never. What is learnt then depends on the machine.
        min_trajectory_length: Shorter games are dropped, and counted. Above 1 a game becomes
            experience when it has ended.
        max_trajectory_length: Games are cut after so many moves, as truncated, and counted; None:
            never.
        force_sync: Collect in the learner's own process, whatever actors there are.
        optimal: Play the best actions, without exploring, from the first move on.

    Raises:
        ValueError, TypeError: A number out of its range or of another type, a least one above the
            greatest, or above `num_epoch_samples`; one line.
    """

    num_epoch_samples: int
    min_batch_size: int = 1
    max_batch_size: int | None = None
    max_wait_time: float | None = None
    min_trajectory_length: int = 1
    max_trajectory_length: int | None = None
    force_sync: bool = False
    optimal: bool = False

    def __post_init__(self) -> None:
        for name in ("num_epoch_samples", "min_batch_size", "min_trajectory_length"):
            check_count(name, getattr(self, name))
        for least, most in (
            ("min_batch_size", "max_batch_size"),
            ("min_trajectory_length", "max_trajectory_length"),
        ):
            low, high = getattr(self, least), getattr(self, most)
            if high is not None and check_count(most, high) < low:
                raise ValueError(f"{least} must be at most {most}, {high}, got {low}")
        if self.min_trajectory_length > self.num_epoch_samples:
            raise ValueError(
                f"min_trajectory_length must be at most num_epoch_samples,"
                f" {self.num_epoch_samples}, got {self.min_trajectory_length}"
            )
        if self.max_wait_time is not None:
            check_number("max_wait_time", self.max_wait_time, 0.0, above=True)
        for name in ("force_sync", "optimal"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false, got {shown(getattr(self, name))}")

    @classmethod
    def read(cls, data: SamplingConfig | Mapping[str, Any]) -> SamplingConfig:
        """From a mapping, such as the key `sampling` of a configuration.

        Raises:
            ValueError, TypeError: A key is unknown or missing, or as of the constructor.
        """
        if isinstance(data, cls):
            return data
        if not isinstance(data, Mapping):
            raise TypeError(f"must be a mapping, got {shown(data)}")
        check_arguments(cls, data)
        if "num_epoch_samples" not in data:
            raise ValueError("the key num_epoch_samples is missing")
        return cls(**data)

    def parts(self, rows: int) -> int:
        """In how many parts the network is asked for the actions of so many rows.

        Raises:
            ValueError: A part would have fewer than `min_batch_size` rows.
        """
        parts = math.ceil(rows / min(rows, self.max_batch_size or rows))
        if rows // parts < self.min_batch_size:
            of = f" in {parts} parts of at most {self.max_batch_size}" if parts > 1 else ""
            raise ValueError(
                f"min_batch_size must be at most {rows // parts}, which {rows} parallel games{of}"
                f" give, got {self.min_batch_size}"
            )
        return parts

    def check(self, rows: int, evaluation_rows: int) -> None:
        """Raises ValueError if so many rows cannot be parted, or the last ones kept apart."""
        if self.parts(rows) > 1 and evaluation_rows:
            raise ValueError(
                f"max_batch_size must be at least the {rows} rows with evaluation_rows,"
                f" got {self.max_batch_size}"
            )
        if self.min_trajectory_length > 1 and evaluation_rows:
            raise ValueError(
                "min_trajectory_length must be 1 with evaluation_rows, as games change their rows,"
                f" got {self.min_trajectory_length}"
            )
