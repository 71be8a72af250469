"""What an actor sends: T parallel steps of its N games in contiguous NumPy arrays."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sb3_ext.adapter.observations import each_entry, entries_of, to_arrays
from sb3_ext.off_policy.collector import ParallelStep


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
        returns: `[T, N]` float32, meant where an episode ended.
        lengths: `[T, N]` int64, likewise.
        next_legal: `[T, N, A]` bool, if the environment was asked for legal actions.
        cut_games: Games that reached the greatest length that there is.
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
    cut_games: int = 0

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
        ended = self.ended
        returns, lengths = self.returns[ended], self.lengths[ended]
        return len(returns), float(returns.sum(dtype=np.float64)), int(lengths.sum())

    def steps(self, rows: int) -> Iterator[ParallelStep]:
        """The steps of the first `rows` games, then those of the next ones; `rows` divides N.

        What a step led to may use the memory of that of the step before.
        """
        values = {field.name: as_tensors(getattr(self, field.name)) for field in fields(self)}
        observations = values["observations"]
        ended = torch.from_numpy(self.ended)
        places = (ended.flatten().cumsum(0) - 1).view(ended.shape)
        some_ended = ended.any(dim=1).tolist()
        names = ("actions", "rewards", "terminated", "truncated", "returns", "lengths")
        for first in range(0, self.actions.shape[1], rows):
            part = slice(first, first + rows)
            shown = each_entry(lambda value, part=part: value[:, part].unbind(), observations)
            legal = values["next_legal"]
            legal = None if legal is None else legal[:, part].unbind()
            reusable = each_entry(lambda value: torch.empty_like(value[0]), shown)
            parts = (ended, places, *(values[name] for name in names))
            steps = zip(*(value[:, part].unbind() for value in parts), strict=True)
            for time, (here, place, actions, rewards, terminated, truncated, *sums) in enumerate(
                steps
            ):
                reached, episode = each_entry(itemgetter(time + 1), shown), None
                if some_ended[time]:
                    row = here.nonzero().squeeze(1)
                    final = partial(_with_final, row, place[row])
                    reached = each_entry(final, reusable, reached, values["final_observations"])
                    episode = {"ended": here, "r": sums[0], "l": sums[1]}
                yield ParallelStep(
                    each_entry(itemgetter(time), shown),
                    actions,
                    rewards,
                    terminated,
                    truncated,
                    reached,
                    None if legal is None else legal[time],
                    episode,
                )


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
        if field.name == "final_observations":
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
        self._final: list[Any] = []
        self._time = 0

    def add(self, step: ParallelStep) -> None:
        """Write the next step."""
        ended = step.terminated | step.truncated
        nothing = torch.zeros(len(ended))
        sums = step.episode or {"r": nothing, "l": nothing}
        self._write("observations", step.observations, self.num_steps + 1)
        self._write("actions", step.actions.long())
        self._write("rewards", step.rewards.float())
        self._write("terminated", step.terminated)
        self._write("truncated", step.truncated)
        self._write("returns", sums["r"].float())
        self._write("lengths", sums["l"].long())
        if step.next_legal is not None:
            self._write("next_legal", step.next_legal)
        self._final.append(each_entry(lambda value: value[ended], step.next_observations))
        self._time += 1

    def finish(self, last: Any, **about: Any) -> Chunk:
        """The chunk; `last` is what the environment shows now."""
        self._write("observations", last, self.num_steps + 1)
        final = each_entry(lambda *parts: torch.cat(parts), self._final[0], *self._final[1:])
        return Chunk(**about, **self._arrays, final_observations=to_arrays(final))

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


def _with_final(rows: Tensor, places: Tensor, result: Tensor, shown: Tensor, final: Tensor) -> Any:
    return result.copy_(shown).index_copy_(0, rows, final[places])


def _put(time: int, array: np.ndarray, value: np.ndarray) -> None:
    array[time] = value
