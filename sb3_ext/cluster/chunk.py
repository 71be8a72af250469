"""What an actor sends: T parallel steps of its N games in contiguous NumPy arrays."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sb3_ext.adapter.observations import each_entry, entries_of, to_arrays
from sb3_ext.ddqn.collector import ParallelStep


@dataclass
class Chunk:
    """T parallel steps of N games, and who collected them when.

    Every observation is there once: what a step led to is shown to the next one, or was the last
    of its episode.

    Attributes:
        actor: Number of the actor.
        generation: How often the actor had been replaced before.
        sequence: Number of the chunk among those of its actor.
        version: Updates that had made the weights which played.
        seconds: What collecting took.
        observations: `[T + 1, N, ...]` or a dictionary of such.
        final_observations: `[M, ...]` of the M episodes that ended, in the order of steps and rows.
        actions: `[T, N]` int64.
        rewards: `[T, N]` float32.
        terminated: `[T, N]` bool.
        truncated: `[T, N]` bool.
        returns: `[M]` float32 of these episodes.
        lengths: `[M]` int64, likewise.
        next_legal: `[T, N, A]` bool, if the environment was asked for legal actions.
    """

    actor: int
    generation: int
    sequence: int
    version: int
    seconds: float
    observations: Any
    final_observations: Any
    actions: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    returns: np.ndarray
    lengths: np.ndarray
    next_legal: np.ndarray | None = None

    @property
    def num_bytes(self) -> int:
        """Of all arrays."""
        values = (getattr(self, field.name) for field in fields(self))
        arrays = (array for value in values for array in entries_of(value).values())
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    @property
    def ended(self) -> np.ndarray:
        """Where an episode ended, `[T, N]` bool."""
        return self.terminated | self.truncated

    def episode_sums(self) -> tuple[int, float, int]:
        """Number of episodes that ended, sum of their returns and of their lengths."""
        total = float(self.returns.sum(dtype=np.float64))
        return len(self.returns), total, int(self.lengths.sum())

    def steps(self, rows: int) -> Iterator[ParallelStep]:
        """All T steps of the first `rows` games, then those of the next ones; `rows` divides N."""
        values = {field.name: as_tensors(getattr(self, field.name)) for field in fields(self)}
        ended = torch.from_numpy(self.ended)
        places = ended.flatten().nonzero().squeeze(1)
        episode = {"ended": ended}
        for name, key in (("returns", "r"), ("lengths", "l")):
            sums = values[name].new_zeros(ended.numel()).index_copy_(0, places, values[name])
            episode[key] = sums.view_as(ended)
        shown = values["observations"]
        reached = each_entry(partial(_with_final, places), shown, values["final_observations"])
        shown = each_entry(lambda value: value[:-1], shown)
        names = ("actions", "rewards", "terminated", "truncated")
        whole = (shown, *(values[name] for name in names), reached, values["next_legal"], episode)
        for first in range(0, self.actions.shape[1], rows):
            part = partial(_rows, slice(first, first + rows))
            cut = [None if each is None else each_entry(part, each) for each in whole]
            yield ParallelStep._make(cut)


def side_by_side(chunks: Sequence[Chunk]) -> Chunk:
    """One chunk with the games of several; what else it says is what the first one does."""
    ended = [chunk.ended for chunk in chunks]
    first_rows = np.cumsum([0, *(each.shape[1] for each in ended)])
    # Where each final observation belongs, by step and then by row.
    places = [np.nonzero(each) for each in ended]
    steps = np.concatenate([step for step, _ in places])
    rows = np.concatenate(
        [row + first for (_, row), first in zip(places, first_rows, strict=False)]
    )
    order = np.lexsort((rows, steps))
    joined: dict[str, Any] = {}
    for field in fields(Chunk):
        values = [getattr(chunk, field.name) for chunk in chunks]
        if field.name in ("final_observations", "returns", "lengths"):
            joined[field.name] = each_entry(lambda *parts: np.concatenate(parts)[order], *values)
        elif isinstance(values[0], (dict, np.ndarray)):
            joined[field.name] = each_entry(lambda *parts: np.concatenate(parts, 1), *values)
    return replace(chunks[0], **joined)


class ChunkWriter:
    """Gathers parallel steps as they are played, so that each is copied once.

    The environment may use the memory of a step again.
    """

    def __init__(self, num_steps: int) -> None:
        self.num_steps = num_steps
        self._arrays: dict[str, Any] = {}
        self._ended: dict[str, list[Any]] = {
            name: [] for name in ("final_observations", "returns", "lengths")
        }
        self._time = 0

    def add(self, step: ParallelStep) -> None:
        """Write the next step."""
        ended = step.terminated | step.truncated
        nothing = torch.zeros(len(ended))
        sums = step.episode or {"r": nothing, "l": nothing}
        self._ended["returns"].append(sums["r"][ended].float())
        self._ended["lengths"].append(sums["l"][ended].long())
        self._write("observations", step.observations, self.num_steps + 1)
        self._write("actions", step.actions.long())
        self._write("rewards", step.rewards.float())
        self._write("terminated", step.terminated)
        self._write("truncated", step.truncated)
        if step.next_legal is not None:
            self._write("next_legal", step.next_legal)
        final = each_entry(lambda value: value[ended], step.next_observations)
        self._ended["final_observations"].append(final)
        self._time += 1

    def finish(self, last: Any, **about: Any) -> Chunk:
        """The chunk; `last` is what the environment shows now."""
        self._write("observations", last, self.num_steps + 1)
        ended = {
            name: to_arrays(each_entry(lambda *parts: torch.cat(parts), *values))
            for name, values in self._ended.items()
        }
        return Chunk(**about, **self._arrays, **ended)

    def _write(self, name: str, value: Any, length: int | None = None) -> None:
        value = to_arrays(value)
        if name not in self._arrays:
            length = self.num_steps if length is None else length
            self._arrays[name] = each_entry(
                lambda first: np.empty((length, *first.shape), first.dtype), value
            )
        each_entry(partial(_put, self._time), self._arrays[name], value)


def as_tensors(value: Any) -> Any:
    """Arrays, or entries that are some, as tensors of the same memory, which nobody writes to."""
    with warnings.catch_warnings():
        # What came through the object store can only be read.
        warnings.filterwarnings("ignore", "The given NumPy array is not writ")
        return each_entry(lambda x: torch.from_numpy(x) if isinstance(x, np.ndarray) else x, value)


def _with_final(places: Tensor, shown: Tensor, final: Tensor) -> Tensor:
    """What all steps led to: what is shown next, or what an episode ended with."""
    reached = shown[1:].clone()
    reached.flatten(0, 1).index_copy_(0, places, final)
    return reached


def _rows(part: slice, value: Tensor) -> Tensor:
    return value[:, part]


def _put(time: int, array: np.ndarray, value: np.ndarray) -> None:
    array[time] = value
