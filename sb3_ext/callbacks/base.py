"""What callbacks share: a rhythm and a memory that survive a resume, and a way to end training."""

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
    """Is due each time a counter passes another multiple of its period.

    Counters are the algorithm's own, so the rhythm goes on unbroken after a resume; seconds count
    from construction, and afresh after a resume. Exactly one period is given, above 0.
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
        """How many periods had passed when it was asked last."""

    def due(self, **counters: float) -> bool:
        """Whether it is time again, after so many in all; asking counts as having acted."""
        counters["seconds"] = time.monotonic() - self._began
        # A counter that went back belongs to a new run of the same object.
        before, self.last = self.last, int(counters[self._unit] // self._period)
        return self.last > before

    def go_on_after(self, last: int) -> None:
        """Goes on where `last` was taken."""
        self.last, self._began = last, time.monotonic() - last * self._period


class PeriodicCallback(BaseCallback):
    """Does something every so often; a resumed run goes on in the same rhythm.

    A subclass writes `act`, and names in `remembered` the attributes that a checkpoint needs.

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
        """What is done each time it is due."""

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
        """Goes on where `state_dict` was taken."""
        self.every.go_on_after(state["every"])
        for name in self.remembered:
            setattr(self, name, copy.deepcopy(state[name]))


def as_tensor(value: Any) -> Tensor:
    """What a callback finds in its locals, as a tensor where it is."""
    return torch.as_tensor(getattr(value, "tensor", value))


def stop_training(model: Any) -> bool:
    """Asks a model to end the running `learn`; returns what `_on_step` has to return.

    Our algorithms make the updates for what was collected first, so that a checkpoint written at
    the end continues exactly. Those of SB3 know only the end in the middle of a rollout.
    """
    if hasattr(model, "request_stop"):
        model.request_stop()
        return True
    model.stop_requested = True  # for who drives it without `learn`
    return False
