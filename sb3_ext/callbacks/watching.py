"""Callbacks that log how a run is doing: actions, layers, times, and what it costs the machine."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor

from sb3_ext.adapter.observations import to_arrays
from sb3_ext.callbacks.base import PeriodicCallback, as_tensor
from sb3_ext.config.checks import check_number
from sb3_ext.schedules.frequency import Every

_MOST_SHARES = 32


def entropy_of_counts(counts: Tensor | Sequence[int]) -> float:
    """Entropy of counts [A] in units of log A: 1 is uniform, 0 is one action or no count."""
    counts = torch.as_tensor(counts)
    if len(counts) < 2 or not counts.any():
        return 0.0
    entropy = torch.special.entr(counts.double() / counts.sum()).sum().item()
    return max(entropy, 0.0) / math.log(len(counts))


class ActionCounts(PeriodicCallback):
    """Counts the actions of the rollouts, exploration included, and the greedy ones.

    A policy that has collapsed chooses one. Logs, each time it is due: ``actions/<k>``, the share
    of action k since the last time (up to 32 actions); ``actions/entropy``, see
    `entropy_of_counts`; ``actions/most_common_share``; and the last two for what the policy would
    choose without exploring in the rows' present states, as ``actions/greedy_entropy`` and
    ``actions/greedy_most_common_share``.

    Counts stay on the device between two logs. Training is not touched: no random number is drawn.

    Attributes:
        last: the counts of the last log, by ``rollout`` and ``greedy``; lists of A integers.
    """

    remembered = ("counts",)

    def __init__(self, every: Every | Mapping[str, Any]) -> None:
        super().__init__(every)
        self.last: dict[str, list[int]] = {}
        self.counts: Tensor | None = None

    def _on_training_start(self) -> None:
        space = self.model.action_space
        if not isinstance(space, spaces.Discrete):
            raise ValueError(f"action counts: need a Discrete action space, got {space}")

    def _on_step(self) -> bool:
        counts = self._count(self.locals["actions"])
        self.counts = counts if self.counts is None else self.counts.to(counts.device) + counts
        return super()._on_step()

    def _count(self, actions: Any) -> Tensor:
        space: Any = self.model.action_space
        index = as_tensor(actions).reshape(-1).long() - int(space.start)
        zeros = index.new_zeros(int(space.n))
        # Unlike bincount this does not wait for the device.
        return zeros.index_add(0, index, torch.ones_like(index))

    def act(self) -> None:
        """Logs the counts since the last time and asks the policy for its greedy choices."""
        assert self.counts is not None
        model, env, first = self.model, self.training_env, int(self.model.action_space.start)  # type: ignore[attr-defined]
        legal = getattr(model, "legal_actions", None)
        told = legal is not None and legal.source == "environment"
        masks = {"action_masks": env.action_masks()} if told else {}  # type: ignore[attr-defined]
        chosen, _ = model.predict(to_arrays(self.locals["new_obs"]), deterministic=True, **masks)
        counts, self.counts = self.counts.cpu(), None
        for action, share in enumerate((counts / counts.sum()).tolist()[:_MOST_SHARES]):
            self.logger.record(f"actions/{action + first}", share, exclude="stdout")
        greedy = self._count(chosen)
        self.last = {"rollout": counts.tolist(), "greedy": greedy.tolist()}
        for prefix, each in (("", counts), ("greedy_", greedy)):
            most = each.max().item() / max(each.sum().item(), 1)
            self.logger.record(f"actions/{prefix}entropy", entropy_of_counts(each))
            self.logger.record(f"actions/{prefix}most_common_share", most)


def layer_statistics(policy: Any) -> dict[str, float]:
    """What `LayerStatistics` logs, by key; waits for the device once."""
    found: dict[str, Tensor] = {}
    for name, parameter in policy.named_parameters():
        for kind, tensor in (("weight", parameter.detach()), ("gradient", parameter.grad)):
            if parameter.grad is not None:
                found[f"layers/{name}/{kind}_mean"] = tensor.mean()
                # Of all entries, so that one entry alone has a deviation too: 0.
                found[f"layers/{name}/{kind}_std"] = tensor.std(correction=0)
    values = torch.stack([*found.values()]).tolist() if found else []
    return dict(zip(found, values, strict=True))


class LayerStatistics(PeriodicCallback):
    """Logs mean and standard deviation of every parameter and of its last gradient.

    The keys are ``layers/<parameter>/weight_mean``, ``weight_std``, ``gradient_mean`` and
    ``gradient_std``; only parameters that had a gradient are logged (a target network has none).
    A gradient is shown after clipping.
    """

    between_rollouts = True

    def act(self) -> None:
        """Reads the networks, with one wait for the device."""
        for name, value in layer_statistics(self.model.policy).items():
            self.logger.record(name, value, exclude="stdout")


class SystemStatistics(PeriodicCallback):
    """Logs what a long run costs its machine, under ``system/``.

    ``processors``: how many this process has kept busy since the last time, on average. Memory in
    MiB: ``memory_mb`` of this process now, ``peak_memory_mb`` at most so far, ``gpu_memory_mb`` and
    ``gpu_peak_memory_mb`` of torch's tensors. ``load``: processes that want a processor, mean of a
    minute. What the system does not tell is left out.
    """

    def _on_training_start(self) -> None:
        self._before = time.process_time(), time.monotonic()

    def act(self) -> None:
        """Logs what is known now."""
        (used, began), self._before = self._before, (time.process_time(), time.monotonic())
        passed = max(self._before[1] - began, 1e-9)
        found = {"processors": (self._before[0] - used) / passed}
        with suppress(AttributeError, ImportError, OSError):
            import resource

            found["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
            found["load"] = os.getloadavg()[0]
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            found["memory_mb"] = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
        if self.model.device.type == "cuda":
            found["gpu_memory_mb"] = torch.cuda.memory_allocated(self.model.device) / 2**20
            found["gpu_peak_memory_mb"] = torch.cuda.max_memory_allocated(self.model.device) / 2**20
        for name, value in found.items():
            self.logger.record(f"system/{name}", value)


class Timers(PeriodicCallback):
    """Measures rollouts, what lies between them, and sections of your own.

    Logs, each time it is due, means since the last time: ``time/rollout_ms`` of a rollout, with the
    environment, the choice of actions and callbacks; ``time/update_ms`` from the end of a rollout
    to the beginning of the next, which is updates and logs; and ``time/<name>_ms`` of sections::

        timers = Timers(Every(updates=1000))
        with timers.section("my_reward"):
            ...

    With ``slow_seconds`` a rollout, an update or a section that takes longer is counted in
    ``time/<name>_slow``, and the first of each name is a warning. An accelerator is not waited
    for: what is measured there is the handing over of work.
    """

    between_rollouts = True

    def __init__(
        self, every: Every | Mapping[str, Any], *, slow_seconds: float | None = None
    ) -> None:
        super().__init__(every)
        if slow_seconds is not None:
            check_number("slow_seconds", slow_seconds, low=0, above=True)
        self.slow_seconds = slow_seconds
        self._on_training_start()

    def _on_training_start(self) -> None:
        self._slow, self._seconds, self._times = (Counter[str]() for _ in range(3))
        self._mark: float | None = None  # when a rollout began or ended last

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Adds the time spent inside to what is measured under a name."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._add(name, time.perf_counter() - began)

    def _add(self, name: str, seconds: float) -> None:
        self._seconds[name] += seconds  # type: ignore[assignment]
        self._times[name] += 1
        if self.slow_seconds is not None and seconds > self.slow_seconds:
            self._slow[name] += 1
            if self._slow[name] == 1:
                allowed = f"slow_seconds is {self.slow_seconds:g}"
                warnings.warn(f"timers: {name} took {seconds:.3g} s, {allowed}", stacklevel=2)

    def _on_rollout_start(self) -> None:
        self._add_since_mark("update")
        super()._on_rollout_start()

    def _on_rollout_end(self) -> None:
        self._add_since_mark("rollout")

    def _add_since_mark(self, name: str) -> None:
        now = time.perf_counter()
        if self._mark is not None:
            self._add(name, now - self._mark)
        self._mark = now

    def act(self) -> None:
        """Logs the means since the last time."""
        for name, seconds in self._seconds.items():
            self.logger.record(f"time/{name}_ms", 1000.0 * seconds / self._times[name])
        for name, times in self._slow.items():
            self.logger.record(f"time/{name}_slow", times)
        self._seconds.clear()
        self._times.clear()
