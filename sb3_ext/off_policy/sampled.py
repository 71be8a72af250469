"""Collecting by the rules of a `SamplingConfig`; docs/sampling.md says what each of them means."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sb3_ext.adapter.observations import each_entry
from sb3_ext.adapter.sb3_private import last_observation, set_last_observation
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.off_policy.collector import ParallelStep, TensorCollector
from sb3_ext.off_policy.sampling import SamplingConfig

HOPELESS = 1000
"""So many short games of every row, one after the other, end the run."""

_FIELDS = ParallelStep._fields[:7]  # but for `episode`, whose results are beside them


class WholeGames:
    """Holds the steps of N rows back until their games have ended, and drops the short ones.

    A game that is kept goes to the row of the replay buffer that has the fewest steps waiting, as
    a whole, so that rows stay level and the next step of a game is in the next time slot.

    Args:
        shortest: Moves of a game that is kept, at least.
    """

    def __init__(self, shortest: int) -> None:
        self.shortest = shortest
        self.counts = {"games": 0, "short_games": 0, "short_transitions": 0, "broken_games": 0}
        self._held: list[dict[str, Any]] = []  # a step each, from number `_first` on
        self._first = self._short_in_a_row = 0
        self._begun = np.zeros(0, np.int64)  # number of the step that began the game of a row
        self._broken = np.zeros(0, bool)  # rows whose game misses its beginning
        self._lanes: list[np.ndarray] = []  # [2, L] step and row of what waits for a row

    def add(self, step: ParallelStep) -> list[ParallelStep]:
        """Take a step of all rows, in tensors; the steps of games that are complete now."""
        ended = step.terminated | step.truncated
        rows = len(ended)
        if not len(self._begun):
            self._begun, self._broken = np.zeros(rows, np.int64), np.zeros(rows, bool)
            self._lanes = [np.zeros((2, 0), np.int64) for _ in range(rows)]
        nothing = torch.zeros(rows, device=ended.device)
        sums = step.episode or {"r": nothing, "l": nothing}
        fields = {name: getattr(step, name) for name in _FIELDS}
        # An environment may use the memory of a step again.
        fields |= {"r": sums["r"].float(), "l": sums["l"].long()}
        self._held.append({name: each_entry(_copied, value) for name, value in fields.items()})
        last = self._first + len(self._held) - 1
        for row in ended.nonzero()[:, 0].tolist():
            begun, self._begun[row] = self._begun[row], last + 1
            length = last + 1 - begun
            if self._broken[row]:
                self._broken[row] = False
            elif length < self.shortest:
                self.counts["short_games"] += 1
                self.counts["short_transitions"] += int(length)
                self._short_in_a_row += 1
            else:
                self.counts["games"] += 1
                self._short_in_a_row = 0
                game = np.stack([np.arange(begun, last + 1), np.full(length, row)])
                lane = min(range(rows), key=lambda each: self._lanes[each].shape[1])
                self._lanes[lane] = np.concatenate([self._lanes[lane], game], axis=1)
        if self._short_in_a_row >= HOPELESS * rows:
            raise ValueError(
                f"min_trajectory_length: none of the last {self._short_in_a_row} games had"
                f" {self.shortest} moves"
            )
        return self._complete()

    def break_off(self) -> None:
        """A step is missing: the games in progress, and what is left of them, are not kept."""
        if not len(self._begun):
            return
        self.counts["broken_games"] += int((~self._broken).sum())
        self._broken[:] = True
        self._begun[:] = self._first + len(self._held)

    def _complete(self) -> list[ParallelStep]:
        count = min(lane.shape[1] for lane in self._lanes)
        if not count:
            return []
        steps, rows = np.stack([lane[:, :count] for lane in self._lanes], axis=2)  # [count, N] each
        self._lanes = [lane[:, count:] for lane in self._lanes]
        at = (torch.from_numpy(steps - self._first), torch.from_numpy(rows))

        def pick(name: str) -> Any:
            if self._held[0][name] is None:
                return [None] * count
            stacked = each_entry(
                lambda *values: torch.stack(values)[at[0], at[1]],
                *(step[name] for step in self._held),
            )
            return [each_entry(itemgetter(number), stacked) for number in range(count)]

        picked = {name: pick(name) for name in (*_FIELDS, "r", "l")}
        returns, lengths = picked.pop("r"), picked.pop("l")
        found = [ParallelStep(*values) for values in zip(*picked.values(), strict=True)]
        for number, step in enumerate(found):
            ended = step.terminated | step.truncated
            if bool(ended.any()):
                episode = {"ended": ended, "r": returns[number], "l": lengths[number]}
                found[number] = step._replace(episode=episode)
        oldest = min([self._begun.min(), *(lane[0].min() for lane in self._lanes if lane.size)])
        del self._held[: oldest - self._first]
        self._first = int(oldest)
        return found

    def state_dict(self) -> dict[str, Any]:
        """What is held and counted, as tensors and plain data."""
        numbers = {"first": self._first, "short_in_a_row": self._short_in_a_row}
        rows = {"begun": self._begun, "broken": self._broken}
        plain = {name: torch.from_numpy(value.copy()) for name, value in rows.items()}
        lanes = [torch.from_numpy(lane.copy()) for lane in self._lanes]
        held = [dict(step) for step in self._held]
        return {**numbers, **plain, "counts": dict(self.counts), "held": held, "lanes": lanes}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self._first, self._short_in_a_row = state["first"], state["short_in_a_row"]
        self._begun, self._broken = state["begun"].numpy().copy(), state["broken"].numpy().copy()
        self.counts = dict(state["counts"])
        self._held = [dict(step) for step in state["held"]]
        self._lanes = [lane.numpy().copy() for lane in state["lanes"]]


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


class SampledCollector:
    """Collects in the learner's process, from the model's own environment; see `Collector`.

    `model.learn(n, collector=SampledCollector(SamplingConfig(num_epoch_samples=512)))`.

    Args:
        sampling: A `SamplingConfig`, or a mapping of its names.

    Attributes:
        statistics: Counts since the run began, logged as `collector/...`: `epochs`, `samples`
            (transitions given), `cut_games`, `late_epochs` (ended by `max_wait_time`), and with a
            least length `games` (kept), `short_games` and `short_transitions` (dropped).
    """

    def __init__(self, sampling: SamplingConfig | Mapping[str, Any]) -> None:
        with errors_named("sampling", ValueError):
            self.sampling = SamplingConfig.read(sampling)
        self._counts = {"epochs": 0, "samples": 0, "late_epochs": 0}
        self._games: WholeGames | None = None
        self._own: TensorCollector | None = None
        self._model: Any = None

    @property
    def statistics(self) -> dict[str, int]:
        """See above."""
        counts = {**self._counts, "cut_games": self._own.cut_games if self._own else 0}
        return counts if self._games is None else {**counts, **self._games.counts}

    @contextmanager
    def session(self, model: Any) -> Iterator[SampledCollector]:
        """Plays the model's environment on from where it stands; see `Collector`."""
        source = model.random_streams.explore
        arguments = (model.env, model.explorer(), model.legal_actions, source)
        with errors_named("sampling", ValueError):
            self.sampling.check(model.n_envs, model.evaluation_rows)
            own = TensorCollector(*arguments, sampling=self.sampling)
        own.observation, own.legal = last_observation(model), model.last_legal
        self._model, self._own = model, own
        shortest = self.sampling.min_trajectory_length
        self._games = WholeGames(shortest) if shortest > 1 else None
        if (saved := model.collector_state) is not None:
            if "counts" not in saved:
                raise ValueError("sampling: the run that goes on has actors, and no force_sync")
            self._counts = dict(saved["counts"])
            own.cut_games, own.running = saved["cut_games"], saved["running"]
            if self._games is not None and saved["games"] is not None:
                self._games.load_state_dict(saved["games"])
        try:
            yield self
            model.collector_state = self.state_dict()
        finally:
            self._model = None

    def publish(self, *_: Any) -> None:
        """The model's own networks play."""

    def collect(self, num_steps: int) -> Iterator[ParallelStep]:
        """See `Collector`: the steps of an epoch, whatever `num_steps` is."""
        own, model, sampling = self._own, self._model, self.sampling
        assert own is not None
        given, began = 0, time.perf_counter()
        while given < sampling.num_epoch_samples:
            if given and is_late(sampling, began):
                self._counts["late_epochs"] += 1
                break
            own.explorer = model.explorer()
            before = own.seconds
            step = own.step()
            model.clock.seconds["environment"] += own.seconds - before
            set_last_observation(model, own.observation)
            model.last_legal = own.legal
            for each in [step] if self._games is None else self._games.add(step):
                given += len(each.rewards)
                self._counts["samples"] += len(each.rewards)
                yield each
        self._counts["epochs"] += 1

    def state_dict(self) -> dict[str, Any]:
        """What a run needs to go on."""
        assert self._own is not None
        games = None if self._games is None else self._games.state_dict()
        own = {"cut_games": self._own.cut_games, "running": self._own.running}
        return {"counts": dict(self._counts), "games": games, **own}


def is_late(sampling: SamplingConfig, began: float) -> bool:
    """Whether an epoch that began then has taken all of its time."""
    most = sampling.max_wait_time
    return most is not None and time.perf_counter() - began >= most
