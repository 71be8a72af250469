"""Schedules for algorithms of stable-baselines3, which know only functions of their progress.

SB3's progress jumps back when ``learn`` is called again, and its learning rate is set once per
block of updates. `bind_schedules` lets both rates follow the model's own counters instead, the
learning rate at every step of the optimiser:

    bind_schedules(model, learning_rate="exp_1e-3_1e-8_0.996", exploration_rate="lin_1_0.05_5000")
    model.learn(10_000)

Call it again after ``load``, or when the optimiser was replaced: a saved model keeps the numbers of
that moment. `DDQN` takes schedules as arguments and needs none of this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.utils import ConstantSchedule
from torch.optim import Optimizer

from sb3_ext.adapter.sb3_private import num_updates, progress_remaining
from sb3_ext.schedules.schedules import Schedule, parse_within


class Following:
    """A schedule of a model's counters in the form that SB3 calls; saved as its number of now.

    Transitions are ``num_transitions`` of the model if it has that, else its ``num_timesteps``,
    which ``learn`` sets back.
    """

    # Of what has a dictionary SB3 writes every attribute as text, the model's address too.
    __slots__ = ("model", "schedule")

    def __init__(self, schedule: Schedule, model: Any) -> None:
        self.schedule, self.model = schedule, model

    def __call__(self, progress_remaining: float) -> float:  # noqa: D102
        return self.value(progress_remaining, num_updates(self.model))

    def value(self, progress_remaining: float, updates: int) -> float:
        """The value, with ``updates`` for the model's number of updates."""
        if self.schedule.unit == "updates":
            return self.schedule(updates)
        if self.schedule.unit == "transitions":
            return self.schedule(getattr(self.model, "num_transitions", self.model.num_timesteps))
        return self.schedule(1.0 - progress_remaining)

    def __reduce__(self) -> tuple[Any, ...]:
        return ConstantSchedule, (self(progress_remaining(self.model)),)


def of_progress(schedule: Schedule) -> Callable[[float], float]:
    """A schedule of the progress as an on-policy algorithm calls it."""
    return lambda remaining: schedule(1.0 - remaining)


def set_learning_rate(optimizer: Optimizer, rate: float) -> None:
    """Give an optimiser a rate; a group with a `rate_factor` gets the rate times that."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("rate_factor", 1.0)


def bind_schedules(model: Any, *, learning_rate: Any = None, exploration_rate: Any = None) -> None:
    """Let the rates of a model follow schedules, in any form that `parse_schedule` reads.

    Raises:
        TypeError: The model is no off-policy algorithm.
        ValueError: A rate that is malformed, out of range or not the model's.
    """
    kind = type(model).__name__
    if not issubclass(type(model), OffPolicyAlgorithm):
        raise TypeError(f"model must be an SB3 off-policy algorithm, got {kind}")
    if exploration_rate is not None:
        if not hasattr(model, "exploration_schedule"):
            raise ValueError(f"exploration_rate: {kind} has no exploration rate")
        highest = getattr(model, "highest_exploration_rate", 1.0)
        schedule = parse_within("exploration_rate", exploration_rate, highest)
        model.exploration_schedule = Following(schedule, model)
        model.exploration_rate = model.exploration_schedule(progress_remaining(model))
    if learning_rate is not None:
        rate = Following(parse_within("learning_rate", learning_rate), model)
        model.lr_schedule = rate
        optimizer = model.policy.optimizer
        set_learning_rate(optimizer, rate(progress_remaining(model)))
        if not getattr(model, "sets_rate_at_every_update", False):
            _set_before_every_step(model, optimizer, rate)


def _set_before_every_step(model: Any, optimizer: Any, rate: Following) -> None:
    block = [-1, 0]  # updates before the running block, steps in it: SB3 counts whole blocks

    def before_step(*_: Any) -> None:
        updates = num_updates(model)
        block[:] = [updates, block[1] + 1 if block[0] == updates else 0]
        set_learning_rate(optimizer, rate.value(progress_remaining(model), updates + block[1]))

    optimizer.register_step_pre_hook(before_step)
