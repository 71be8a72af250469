"""What an actor sends: T parallel steps of its N games, as one `ParallelStep` of NumPy arrays."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from sb3_ext.adapter.observations import each_entry
from sb3_ext.ddqn.collector import ParallelStep


@dataclass
class Chunk:
    """T parallel steps of N games, and who collected them when.

    Attributes:
        actor: Number of the actor.
        sequence: Number of the chunk among those of its actor.
        version: Updates that had made the weights which played.
        seconds: What collecting took.
        steps: Arrays `[T, N, ...]`; `episode` is there, with zeros where none ended.
    """

    actor: int
    sequence: int
    version: int
    seconds: float
    steps: ParallelStep


def stacked(steps: Iterable[ParallelStep]) -> ParallelStep:
    """Steps of the same games one after another as one; their memory may be used again."""
    copies = [_copied(step.as_arrays()) for step in steps]
    return ParallelStep._make(
        None if values[0] is None else each_entry(lambda *each: np.stack(each), *values)
        for values in zip(*copies, strict=True)
    )


def _copied(step: ParallelStep) -> ParallelStep:
    ended = step.terminated | step.truncated
    sums = step.episode or {"r": np.zeros(len(ended), "f4"), "l": np.zeros(len(ended), "i8")}
    episode = {"ended": ended, "r": sums["r"] * ended, "l": sums["l"] * ended}
    return step._replace(episode=episode)._each(partial(each_entry, np.copy))


def blocks(steps: ParallelStep, rows: int) -> Iterator[ParallelStep]:
    """All T steps of the first games in tensors, then those of the next; `rows` divides N."""
    whole = steps._each(as_tensors)
    for first in range(0, steps.actions.shape[1], rows):
        part = operator.itemgetter((slice(None), slice(first, first + rows)))
        yield whole._each(partial(each_entry, part))


def as_tensors(value: Any) -> Any:
    """Return arrays, or entries that are arrays, as read-only tensors of the same memory."""
    with warnings.catch_warnings():
        # What came through the object store can only be read.
        warnings.filterwarnings("ignore", "The given NumPy array is not writ")
        return each_entry(torch.from_numpy, value)
