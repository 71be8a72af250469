"""Conditions on metrics, for curricula and for stopping early, and where their values come from.

In configuration files a condition is a mapping: ``{condition: bound, field: rho/choose_first,
lower: 0.15}`` or ``{condition: converged, field: rho/score, window: 5, tolerance: 0.002}``.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger

from sb3_ext.adapter.sb3_private import num_updates
from sb3_ext.callbacks.rho_evaluation import RhoEvaluation
from sb3_ext.checkpoints.resume import walk_callbacks
from sb3_ext.config.arguments import from_data
from sb3_ext.config.checks import check_count, check_number
from sb3_ext.config.registry import Registry


class Condition(ABC):
    """Something about the values that one metric takes one after the other.

    Args:
        field: name of the metric, such as ``rho/choose_first`` or ``updates``.
    """

    def __init__(self, field: str) -> None:
        if not isinstance(field, str) or not field:
            raise ValueError(f"field must be the name of a metric, got {field!r}")
        self.field = field
        self._noted: dict[str, Any] = {}  # plain data

    def observe(self, values: Mapping[str, float]) -> None:
        """Takes note of new values; metrics that are not there have none."""
        if self.field in values:
            self._observe(float(values[self.field]))

    @abstractmethod
    def _observe(self, value: float) -> None:
        """Takes note of a new value."""

    @property
    @abstractmethod
    def met(self) -> bool:
        """Whether the condition holds now."""

    def state_dict(self) -> dict[str, Any]:
        """What has been noted, as plain data."""
        return copy.deepcopy(self._noted)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Puts back what `state_dict` gave."""
        self._noted = {name: copy.deepcopy(state[name]) for name in self._noted}


CONDITIONS: Registry[type[Condition]] = Registry("condition", Condition)


@CONDITIONS.register("bound")
class Bound(Condition):
    """The newest values lie between two bounds.

    Args:
        field: name of the metric.
        lower: smallest value that counts; None for no such bound.
        upper: largest value that counts; None for no such bound.
        times: how many values in a row have to lie between them.

    Raises:
        ValueError, TypeError: no bound at all, or an upper one below the lower one.
    """

    def __init__(
        self, field: str, lower: float | None = None, upper: float | None = None, times: int = 1
    ) -> None:
        super().__init__(field)
        if lower is None and upper is None:
            raise ValueError(f"bound of {field}: give lower, upper or both")
        self.lower = -math.inf if lower is None else check_number("lower", lower)
        self.upper = math.inf if upper is None else check_number("upper", upper)
        if self.upper < self.lower:
            raise ValueError(f"upper must be at least lower ({lower:g}), got {upper:g}")
        self.times = check_count("times", times)
        self._noted = {"in_a_row": 0}

    def _observe(self, value: float) -> None:
        inside = self.lower <= value <= self.upper
        self._noted["in_a_row"] = self._noted["in_a_row"] + 1 if inside else 0

    @property
    def met(self) -> bool:  # noqa: D102
        return bool(self._noted["in_a_row"] >= self.times)


@CONDITIONS.register("converged")
class Converged(Condition):
    """The newest values are all about the same.

    Args:
        field: name of the metric.
        window: how many of the newest values are looked at, at least 2.
        tolerance: largest distance from their mean, in the metric's own unit.
        confidence: share of them that must keep to it, above 0 and at most 1.
        warmup: values that are left out at the beginning.

    Raises:
        ValueError, TypeError: a number out of its range.
    """

    def __init__(
        self,
        field: str,
        window: int = 10,
        tolerance: float = 0.01,
        confidence: float = 0.9,
        warmup: int = 0,
    ) -> None:
        super().__init__(field)
        self.window = check_count("window", window, low=2)
        self.tolerance = check_number("tolerance", tolerance, low=0)
        self.confidence = check_number("confidence", confidence, low=0, high=1, above=True)
        self.warmup = check_count("warmup", warmup, low=0)
        self._noted = {"seen": 0, "values": []}

    def _observe(self, value: float) -> None:
        self._noted["seen"] += 1
        if self._noted["seen"] > self.warmup:
            self._noted["values"] = [*self._noted["values"], value][-self.window :]

    @property
    def met(self) -> bool:  # noqa: D102
        values = self._noted["values"]
        if len(values) < self.window:
            return False
        mean = sum(values) / self.window
        near = sum(abs(value - mean) <= self.tolerance for value in values)
        return near >= self.confidence * self.window


def parse_conditions(value: Any, name: str = "until") -> list[Condition]:
    """Conditions from objects or mappings, one or a list of them; errors as `from_data`."""
    items = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    try:
        return [
            item if isinstance(item, Condition) else from_data(CONDITIONS, "condition", item)
            for item in items
        ]
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def load_states(
    conditions: Sequence[Condition], states: Sequence[Mapping[str, Any]], name: str = "until"
) -> None:
    """Puts back the states of conditions; a ValueError if there were more or fewer."""
    if len(states) != len(conditions):
        raise ValueError(f"{name}: {len(states)} conditions were saved, {len(conditions)} are here")
    for condition, state in zip(conditions, states, strict=True):
        condition.load_state_dict(state)


class LastLogged(KVWriter):
    """Keeps the numbers that a logger wrote last, by name.

    Args:
        fields: the names that are kept; None: all.
    """

    def __init__(self, fields: frozenset[str] | None = None) -> None:
        self.fields = fields
        self.values: dict[str, float] = {}

    def write(self, key_values: dict[str, Any], key_excluded: Any, step: int = 0) -> None:
        """Takes what is written to a log."""
        for key in key_values if self.fields is None else self.fields & key_values.keys():
            if hasattr(key_values[key], "__float__"):
                self.values[key] = float(key_values[key])

    def close(self) -> None:
        """Nothing is held open."""


class MetricFeed(LastLogged):
    """Hands out each value once: of `RhoEvaluation` as soon as it is measured, of logs as written.

    ``rho/<opponent>`` and ``rho/score`` come from the evaluations among the callbacks, if there are
    any; ``updates`` and ``transitions`` are always there; everything else under its name in the
    log. When logs are written by time, as is the default, what is decided by them is not
    repeatable: use ``log_interval_updates`` then.

    Args:
        fields: the metrics that are wanted; others are not kept.
    """

    def __init__(self, fields: Iterable[str]) -> None:
        super().__init__(frozenset(fields))
        self._evaluations: list[RhoEvaluation] = []
        self._seen: list[int] = []
        self._logger: Logger | None = None

    def start(self, callback: BaseCallback) -> None:
        """Finds the sources; call it when training starts."""
        self.stop()
        self._evaluations = [
            each
            for each in walk_callbacks(callback.locals.get("callback"))
            if isinstance(each, RhoEvaluation)
        ]
        self._seen = (self._seen + [0] * len(self._evaluations))[: len(self._evaluations)]
        self._logger = callback.logger
        self._logger.output_formats.append(self)

    def stop(self) -> None:
        """Lets go of the log; again is harmless."""
        if self._logger is not None:
            if self in self._logger.output_formats:
                self._logger.output_formats.remove(self)
            self._logger = None

    def show(self, model: Any, conditions: Sequence[Condition]) -> None:
        """Has conditions observe the values since the last call, the oldest first."""
        for values in self._take(model):
            for condition in conditions:
                condition.observe(values)

    def _take(self, model: Any) -> list[dict[str, float]]:
        counters = {"transitions": float(model.num_timesteps), "updates": float(num_updates(model))}
        logged, self.values = self.values, {}
        batches = [counters]
        for number, evaluation in enumerate(self._evaluations):
            for entry in evaluation.history[self._seen[number] :]:
                values = {f"rho/{name}": value for name, value in entry["rho"].items()}
                batches.append({**values, "rho/score": entry["score"]})
            self._seen[number] = len(evaluation.history)
        if self._evaluations:
            logged = {k: v for k, v in logged.items() if not k.startswith("rho/")}
        return [*batches, logged] if logged else batches

    def state_dict(self) -> dict[str, Any]:
        """How many evaluations were handed out, and what was logged since."""
        return {"logged": dict(self.values), "seen": list(self._seen)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state_dict` was taken."""
        self._seen, self.values = list(state["seen"]), dict(state["logged"])
