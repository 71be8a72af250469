"""What callbacks share: a rhythm and a memory that survive a resume, and a way to end training."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor

from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.schedules.frequency import Every, parse_every


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
        self.every = parse_every(every)

    @abstractmethod
    def act(self) -> None:
        """What is done each time it is due."""

    def _is_due(self) -> bool:
        counters = {"updates": num_updates(self.model), "transitions": self.model.num_timesteps}
        return self.every.due(**counters)

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
        return {"every": self.every.state_dict(), **own}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state_dict` was taken."""
        self.every.load_state_dict(state["every"])
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
