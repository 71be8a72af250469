"""What an actor sends: T parallel steps of its N games in contiguous NumPy arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    sequence: int
    version: int
    observations: Any
    final_observations: Any
    actions: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    returns: np.ndarray
    lengths: np.ndarray
    next_legal: np.ndarray | None = None
    seconds: float = 0.0

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


def chunk_of(steps: Iterable[ParallelStep], shown: Callable[[], Any], **about: Any) -> Chunk:
    """A chunk of steps; the environment may use the memory of each again for the next one.

    Args:
        steps: Parallel steps of the same games.
        shown: What the environment shows after the last of them.
        **about: Who collected them when.
    """
    values: dict[str, list[Any]] = {}
    ends: dict[str, list[Any]] = {}
    for step in steps:
        given = step.as_arrays()
        ended = given.terminated | given.truncated
        nothing = np.zeros(len(ended))
        sums = given.episode or {"r": nothing, "l": nothing}
        over = {"final_observations": given.next_observations}
        over |= {"returns": sums["r"], "lengths": sums["l"]}
        for name, value in over.items():
            ends.setdefault(name, []).append(each_entry(partial(_rows_of, ended), value))
        for name in ("observations", "actions", "rewards", "terminated", "truncated", "next_legal"):
            if (value := getattr(given, name)) is not None:
                values.setdefault(name, []).append(each_entry(np.copy, value))
    values["observations"].append(to_arrays(shown()))
    arrays: dict[str, Any] = {name: each_entry(_stacked, *parts) for name, parts in values.items()}
    arrays |= {name: each_entry(_joined, *parts) for name, parts in ends.items()}
    for name, kind in _KINDS.items():
        arrays[name] = arrays[name].astype(kind, copy=False)
    return Chunk(**about, **arrays)


_KINDS = {"actions": "int64", "rewards": "float32", "returns": "float32", "lengths": "int64"}


def _rows_of(ended: np.ndarray, value: np.ndarray) -> np.ndarray:
    return value[ended]


def _stacked(*parts: np.ndarray) -> np.ndarray:
    return np.stack(parts)


def _joined(*parts: np.ndarray) -> np.ndarray:
    return np.concatenate(parts)


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
