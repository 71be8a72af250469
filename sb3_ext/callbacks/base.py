"""The base of callbacks: a period and a state that survive a resume, and a way to end training."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor

from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.config.checks import check_number


@dataclass(kw_only=True)
class Every:
    """A trigger that is due each time a counter passes a multiple of its period.

    Counters are the algorithm's own, so a resume does not disturb them. Seconds count from
    construction, and start again after a resume. Exactly one period is given, above 0.
    """

    updates: int | None = None
    transitions: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        given = {unit: period for unit, period in vars(self).items() if period is not None}
        if len(given) != 1:
            raise ValueError(f"every: need one of updates, transitions, seconds, got {given}")
        ((self._unit, period),) = given.items()
        self._period = check_number(f"every.{self._unit}", period, low=0, above=True)
        self._began = time.monotonic()
        self.last = 0
        """Number of periods that had passed at the last call."""

    def due(self, **counters: float) -> bool:
        """Return whether the trigger is due at these counts; asking counts as having acted."""
        counters["seconds"] = time.monotonic() - self._began
        # A counter that went back belongs to a new run of the same object.
        before, self.last = self.last, int(counters[self._unit] // self._period)
        return self.last > before

    def go_on_after(self, last: int) -> None:
        """Continue from a saved `last`."""
        self.last, self._began = last, time.monotonic() - last * self._period


class PeriodicCallback(BaseCallback):
    """A callback that acts periodically; a resumed run keeps the same period.

    A subclass defines `act`, and lists in `remembered` the attributes that a checkpoint needs.

    Args:
        every: how often, an `Every` or ``{"updates": 1000}``.
        verbose: as in SB3.
    """

    remembered: ClassVar[tuple[str, ...]] = ()
    between_rollouts: ClassVar[bool] = False
    """Act when a rollout begins, after the updates of the one before, rather than in a step."""

    def __init__(self, every: Every | Mapping[str, Any], verbose: int = 0) -> None:
        super().__init__(verbose)
        if not isinstance(every, (Every, Mapping)):
            raise TypeError(f"every must be a mapping like {{updates: 1000}}, got {every!r}")
        self.every = every if isinstance(every, Every) else Every(**every)

    @abstractmethod
    def act(self) -> None:
        """Act; called each time the period ends."""

    def _is_due(self) -> bool:
        model = self.model
        return self.every.due(updates=num_updates(model), transitions=model.num_timesteps)

    def _on_rollout_start(self) -> None:
        if self.between_rollouts and self._is_due():
            self.act()

    def _on_step(self) -> bool:
        if not self.between_rollouts and self._is_due():
            self.act()
        return True

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs, as tensors and plain data."""
        own = {name: copy.deepcopy(getattr(self, name)) for name in self.remembered}
        return {"every": self.every.last, **own}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved `state_dict`."""
        self.every.go_on_after(state["every"])
        for name in self.remembered:
            setattr(self, name, copy.deepcopy(state[name]))


def as_tensor(value: Any) -> Tensor:
    """Return a value from a callback's locals, as a tensor on its device."""
    return torch.as_tensor(getattr(value, "tensor", value))


def stop_training(model: Any) -> bool:
    """Ask a model to end `learn`; return the value that `_on_step` must return.

    Our algorithms first make the updates for the collected data, so that a final checkpoint
    continues exactly. SB3's own stop in the middle of a rollout.
    """
    if hasattr(model, "request_stop"):
        model.request_stop()
        return True
    model.stop_requested = True  # for code that drives it without `learn`
    return False
