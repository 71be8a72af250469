"""Schedules attached to any SB3 off-policy algorithm.

SB3 calls its schedules with the progress that remains, which jumps back when ``learn`` is called
again, and evaluates the learning rate once per ``train`` call, not once per update. So
``lr_schedule`` and ``exploration_schedule`` are replaced by a ``BoundSchedule``, which reads the
model's own counters. A ``Schedule`` given to the constructor of a stock algorithm is not enough:

    bind_schedules(model, learning_rate="exp_1e-3_1e-8_0.996", exploration_rate="lin_1_0.05_5000")
    model.learn(10_000)
    model.save("model.zip")
    model = DQN.load("model.zip", env)
    rebind_schedules(model)

``save`` stores the schedules with their clock but not the link to the model, and ``load`` sets up
stock schedules again: without ``rebind_schedules`` the first update raises.

The learning rate has one setter. An algorithm that says ``sets_rate_at_every_update`` calls its
schedule before every update itself, as `DDQN` does; for the others a hook of the optimisers does.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from torch.optim import Optimizer

from sb3_ext.adapter.sb3_private import num_updates, progress_remaining, timesteps_at_start
from sb3_ext.config.checks import check_count
from sb3_ext.schedules.schedules import Constant, Schedule, Unit, parse_schedule

ProgressSchedule = Callable[[float], float]


class ModelClock:
    """Transitions that a model has seen; goes on where ``learn`` sets ``num_timesteps`` to 0."""

    def __init__(self) -> None:
        self._earlier = 0
        self._last = 0
        self._learn_started: float | None = None

    def transitions(self, model: OffPolicyAlgorithm) -> int:
        """The transitions so far. Has to be read at least once in each ``learn`` call."""
        # SB3 stamps start_time at every learn(): only then can the counter have gone back.
        if model.start_time != self._learn_started:
            self._earlier += max(self._last - timesteps_at_start(model), 0)
            self._learn_started = model.start_time
        self._last = model.num_timesteps
        return self._earlier + self._last

    def state_dict(self) -> dict[str, int]:  # noqa: D102
        return {"earlier": self._earlier, "last": self._last}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Puts back what ``state_dict`` gave."""
        self._earlier = check_count("earlier", state["earlier"], low=0)
        self._last = check_count("last", state["last"], low=0)
        self._learn_started = None


class BoundSchedule:
    """A schedule in the form SB3 calls, reading its count from a model.

    Args:
        schedule: a ``Schedule``, or a callable of the remaining progress as SB3 has them.
        total_timesteps: length of training for a schedule of the progress. None takes SB3's own
            progress, which starts a new stretch in every ``learn``.
        clock: the model's clock; a new one by default.
    """

    def __init__(
        self,
        schedule: Schedule | ProgressSchedule,
        total_timesteps: int | None = None,
        clock: ModelClock | None = None,
    ) -> None:
        self.schedule, self.total_timesteps = schedule, total_timesteps
        self.clock = clock or ModelClock()
        self.was_bound = False
        self._forget_model()

    def _forget_model(self) -> None:
        self._model: Callable[[], OffPolicyAlgorithm | None] = lambda: None
        self._hooks: list[Any] = []
        self._before_train = 0  # updates done when SB3 last asked, at the start of a train() call
        self._steps: dict[int, int] = {}  # of every optimiser since

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget_model()

    def bind(self, model: OffPolicyAlgorithm) -> None:
        """Reads the count from this model from now on."""
        self.unhook()
        self._forget_model()
        self._model = weakref.ref(model)
        self.was_bound = True
        self._before_train = num_updates(model)

    def __call__(self, progress_remaining: float) -> float:
        """The value now; SB3's progress, 1 to 0, is used only where there is no model.

        Raises:
            RuntimeError: the schedule lost its model in a save or a copy, or never had one and
                counts something else than the progress.
        """
        model = self._model()
        if model is not None:
            self._before_train = num_updates(model)
            self._steps.clear()
            return self.value(model, self._before_train)
        # SB3 builds its optimisers with a progress of 1, before a model can have been bound.
        if progress_remaining == 1 or not self.was_bound:
            if not isinstance(self.schedule, Schedule):
                return float(self.schedule(progress_remaining))
            if progress_remaining == 1 or self.schedule.unit == "progress":
                return self.schedule(1.0 - progress_remaining)
        raise RuntimeError(
            f"{self.schedule!r} has no model to count by: call bind_schedules(model, ...) on a new"
            " model, rebind_schedules(model) after load() or a copy"
        )

    def value(self, model: OffPolicyAlgorithm, updates: int) -> float:
        """The value at the model's clock, with ``updates`` as its number of updates."""
        transitions = self.clock.transitions(model)
        remaining = progress_remaining(model)
        if not isinstance(self.schedule, Schedule):
            return float(self.schedule(remaining))
        if self.schedule.unit == "updates":
            return self.schedule(updates)
        if self.schedule.unit == "transitions":
            return self.schedule(transitions)
        done = transitions / self.total_timesteps if self.total_timesteps else 1.0 - remaining
        return self.schedule(min(max(done, 0.0), 1.0))

    def set_rates(self, model: OffPolicyAlgorithm) -> None:
        """Sets the rate of all optimisers now, and before each step if the model does not."""
        for optimizer in _optimizers(model):
            set_learning_rate(optimizer, self.value(model, num_updates(model)))
            if not getattr(model, "sets_rate_at_every_update", False):
                self._hooks.append(optimizer.register_step_pre_hook(self._before_step))

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        model = self._model()
        if model is None:
            return
        done = self._steps.get(id(optimizer), 0)
        self._steps[id(optimizer)] = done + 1
        # DQN and SAC raise their counter after all the steps of a train() call, TD3 before each
        # step, with an actor that skips some: whichever has come further is the update's number.
        updates = max(self._before_train + done, num_updates(model) - 1, 0)
        set_learning_rate(optimizer, self.value(model, updates))

    def unhook(self) -> None:
        """Leaves the optimisers alone again."""
        for handle in self._hooks:
            handle.remove()
        self._hooks = []

    def state_dict(self) -> dict[str, Any]:
        """The clock as plain data, for a checkpoint."""
        return {"clock": self.clock.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Puts back what ``state_dict`` gave; a ValueError names what does not fit."""
        if set(state) != {"clock"}:
            raise ValueError(f"state needs the key clock alone, got {dict(state)}")
        self.clock.load_state_dict(state["clock"])


def set_learning_rate(optimizer: Optimizer, rate: float) -> None:
    """Give an optimiser a rate; a tensor is filled, since a captured update reads it there.

    A group with a `rate_factor` gets the rate times that, see `parameter_groups`.
    """
    for group in optimizer.param_groups:
        own = rate * group.get("rate_factor", 1.0)
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(own)
        else:
            group["lr"] = own


def bind_schedules(
    model: OffPolicyAlgorithm,
    *,
    learning_rate: Any = None,
    exploration_rate: Any = None,
    total_timesteps: int | None = None,
) -> None:
    """Attaches schedules to a model, in place of its own.

    The learning rate is then set before every step of every optimiser, the exploration rate after
    every environment step; both also now. Call it again to change one of them, or after an
    optimiser was replaced.

    Args:
        model: the model.
        learning_rate: what ``parse_schedule`` reads; None keeps the model's, attaching it if it is
            a ``Schedule``.
        exploration_rate: the same, for models with an exploration rate (DQN, QRDQN).
        total_timesteps: see `BoundSchedule`.

    Raises:
        TypeError: the model is no off-policy algorithm.
        ValueError: nothing to attach, or a rate that is malformed, out of range or not the model's.
    """
    if not isinstance(model, OffPolicyAlgorithm):
        raise TypeError(f"model must be an SB3 off-policy algorithm, got {type(model).__name__}")
    if learning_rate is None and isinstance(model.learning_rate, Schedule):
        learning_rate = model.learning_rate
    if learning_rate is None and exploration_rate is None:
        raise ValueError("bind_schedules needs learning_rate, exploration_rate or both")
    if exploration_rate is not None and not hasattr(model, "exploration_schedule"):
        raise ValueError(f"exploration_rate: {type(model).__name__} has no exploration rate")
    if total_timesteps is not None:
        total_timesteps = check_count("total_timesteps", total_timesteps)

    bound: dict[str, BoundSchedule] = getattr(model, "bound_schedules", {})
    clock = next(iter(bound.values())).clock if bound else ModelClock()
    given: dict[str, Any] = {}
    if learning_rate is not None:
        given["learning_rate"] = parse_within("learning_rate", learning_rate)
    elif "learning_rate" not in bound:
        # Bound although unchanged: after load() it is the learning rate that raises when the
        # schedules were not bound again, while SB3 resets the exploration silently.
        current = model.learning_rate
        given["learning_rate"] = current if callable(current) else Constant(float(current))
    if exploration_rate is not None:
        highest = getattr(model, "highest_exploration_rate", 1.0)
        given["exploration_rate"] = parse_within("exploration_rate", exploration_rate, highest)

    for old in bound.values():
        old.unhook()
    new = {name: BoundSchedule(each, total_timesteps, clock) for name, each in given.items()}
    model.bound_schedules = {**bound, **new}  # type: ignore[attr-defined]
    rebind_schedules(model)


def parse_within(
    name: str, value: Any, highest: float = float("inf"), unit: Unit | None = None
) -> Schedule:
    """As `parse_schedule`, for values in [0, highest]."""
    schedule = parse_schedule(value, name, unit)
    low, high = schedule.bounds()
    if low < 0 or high > highest:
        closing = "]" if highest < float("inf") else ")"
        raise ValueError(
            f"{name}: values must lie in [0, {highest:g}{closing}, {schedule!r} takes "
            f"{low:g} to {high:g}"
        )
    return schedule


def rebind_schedules(model: OffPolicyAlgorithm) -> None:
    """Attaches the schedules that a loaded or copied model carries; without any, does nothing."""
    bound: dict[str, BoundSchedule] = getattr(model, "bound_schedules", {})
    for schedule in bound.values():
        schedule.bind(model)
    if "learning_rate" in bound:
        model.learning_rate = model.lr_schedule = bound["learning_rate"]
        bound["learning_rate"].set_rates(model)
    if "exploration_rate" in bound:
        exploring: Any = model
        exploring.exploration_schedule = bound["exploration_rate"]
        exploring.exploration_rate = bound["exploration_rate"](progress_remaining(model))


def _optimizers(model: OffPolicyAlgorithm) -> Iterator[Optimizer]:
    """Every optimiser of the model, of its policy and of the policy's networks, once each."""
    seen: set[int] = set()
    for holder in (model, *model.policy.modules()):
        for value in vars(holder).values():
            if isinstance(value, Optimizer) and id(value) not in seen:
                seen.add(id(value))
                yield value
