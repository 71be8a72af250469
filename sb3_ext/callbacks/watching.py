"""Callbacks that log actions, layers, times, and the load of the machine."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from sb3_ext.callbacks.base import Period, PeriodicCallback, as_tensor
from sb3_ext.types import Metrics


def entropy_of_counts(counts: Tensor | Sequence[int]) -> float:
    """Return the entropy of counts [A] divided by log A: 1 if uniform, 0 for at most one action."""
    counts = torch.as_tensor(counts)
    if len(counts) < 2 or not counts.any():
        return 0.0
    entropy = torch.special.entr(counts.double() / counts.sum()).sum().item()
    return max(entropy, 0.0) / math.log(len(counts))


class ActionCounts(PeriodicCallback):
    """Count the actions of the rollouts, including exploration.

    A collapsed policy chooses one action only. Each period logs ``actions/<k>``, the share of
    action k in the period (up to 32 actions), ``actions/entropy`` (see `entropy_of_counts`) and
    ``actions/most_common_share``.

    Counts stay on the device between two logs. No random numbers are drawn, so training is
    unaffected.
    """

    remembered = ("counts",)

    def __init__(self, every: Period) -> None:
        super().__init__(every)
        self.counts: Any = None

    def _on_step(self) -> bool:
        index = as_tensor(self.locals, "actions").reshape(-1).long()
        zeros = index.new_zeros(int(self.model.action_space.n))  # type: ignore[attr-defined]
        # Unlike bincount this does not wait for the device.
        counts = zeros.index_add(0, index, torch.ones_like(index))
        self.counts = counts if self.counts is None else self.counts.to(counts.device) + counts
        return super()._on_step()

    def act(self) -> None:
        """Log the counts of the period."""
        counts, self.counts = self.counts.cpu(), None
        shares = (counts / counts.sum()).tolist()
        for action, share in enumerate(shares[:32]):
            self.logger.record(f"actions/{action}", share, exclude="stdout")
        self.logger.record("actions/entropy", entropy_of_counts(counts))
        self.logger.record("actions/most_common_share", max(shares))


def layer_statistics(policy: Any) -> Metrics:
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
    """Log the load of the machine, under ``system/``.

    ``processors``: how many this process has kept busy since the last time, on average. In MiB
    ``peak_memory_mb``, what this process had at most so far, and ``gpu_peak_memory_mb`` of torch's
    tensors.
    """

    def _on_training_start(self) -> None:
        self._before = time.process_time(), time.monotonic()

    def act(self) -> None:
        """Logs what is known now."""
        (used, began), self._before = self._before, (time.process_time(), time.monotonic())
        processors = (self._before[0] - used) / max(self._before[1] - began, 1e-9)
        self.logger.record("system/processors", processors)
        with suppress(ImportError):  # not on Windows
            import resource

            unit = 2**20 if sys.platform == "darwin" else 2**10
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
            self.logger.record("system/peak_memory_mb", peak)
        if self.model.device.type == "cuda":
            peak = torch.cuda.max_memory_allocated(self.model.device) / 2**20
            self.logger.record("system/gpu_peak_memory_mb", peak)


class Timers(PeriodicCallback):
    """Measure the time of rollouts and of updates.

    Logs, each time it is due, means since the last time: ``time/rollout_ms`` of a rollout, with the
    environment, the choice of actions and callbacks; ``time/update_ms`` from the end of a rollout
    to the beginning of the next, which is updates and logs.

    With ``slow_seconds`` a rollout or an update that takes longer is counted in
    ``time/<name>_slow``, and the first of each is a warning. On an accelerator this measures
    queuing, since it does not wait for the device.
    """

    between_rollouts = True

    def __init__(self, every: Period, *, slow_seconds: float = math.inf) -> None:
        super().__init__(every)
        self.slow_seconds = slow_seconds

    def _on_training_start(self) -> None:
        self._slow = Counter[str]()
        self._seconds = defaultdict[str, list[float]](list)
        self._mark: float | None = None  # when a rollout began or ended last

    def _add(self, name: str) -> None:
        before, self._mark = self._mark, time.perf_counter()
        if before is None:
            return
        seconds = self._mark - before
        self._seconds[name].append(seconds)
        if seconds > self.slow_seconds:
            self._slow[name] += 1
            if self._slow[name] == 1:
                warnings.warn(
                    f"timers: {name} took {seconds:.3g} s, slow_seconds is {self.slow_seconds:g}",
                    stacklevel=2,
                )

    def _on_rollout_start(self) -> None:
        self._add("update")
        super()._on_rollout_start()

    def _on_rollout_end(self) -> None:
        self._add("rollout")

    def act(self) -> None:
        """Logs the means since the last time."""
        for name, seconds in self._seconds.items():
            self.logger.record(f"time/{name}_ms", 1000.0 * fmean(seconds))
        for name, times in self._slow.items():
            self.logger.record(f"time/{name}_slow", times)
        self._seconds.clear()
