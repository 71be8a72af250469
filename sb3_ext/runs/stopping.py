"""Stop rules for every command: budgets, and conditions on metrics.

In configuration files a condition is a mapping: ``{condition: bound, field: rho/choose_first,
lower: 0.15}`` or ``{condition: converged, field: rho/score, window: 5, tolerance: 0.002}``.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import partial
from typing import Annotated, Any

from sb3_ext.config.checks import (
    ConfigError,
    Registry,
    check_count,
    check_number,
    errors_of,
    from_data,
    unknown_word,
)
from sb3_ext.config.sections import (
    PositiveCount,
    PositiveNumber,
    Section,
    checked,
    read_as,
    split_setting,
)
from sb3_ext.types import Metrics, StateDict


class Condition(ABC):
    """A condition on the newest values of one metric.

    Args:
        field: name of the metric, such as ``rho/choose_first`` or ``updates``.
        size: number of the newest values that decide.
    """

    def __init__(self, field: str, size: int) -> None:
        if not field:
            raise ValueError("field must be the name of a metric, got ''")
        self.field = field
        self.window = size
        self._values: list[float] = []

    def observe(self, values: Metrics) -> None:
        """Takes note of new values; metrics that are not there have none."""
        if self.field in values:
            self._values = [*self._values, float(values[self.field])][-self.window :]

    @property
    def met(self) -> bool:
        """Whether the condition holds now."""
        return len(self._values) == self.window and self._holds(self._values)

    @abstractmethod
    def _holds(self, values: list[float]) -> bool:
        """Whether it holds for these values, the `window` newest ones, the oldest first."""

    def state_dict(self) -> StateDict:
        """What has been noted, as plain data."""
        return {"values": self._values}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore `state_dict`."""
        self._values = list(state["values"])


CONDITIONS: Registry[type[Condition]] = Registry("condition", Condition)


@CONDITIONS.register("bound")
class Bound(Condition):
    """Hold if the newest values lie between two bounds.

    Args:
        field: name of the metric.
        lower: lower bound, or None.
        upper: upper bound, or None.
        times: number of values in a row that must lie between them.

    Raises:
        ValueError, TypeError: no bound at all, or an upper one below the lower one.
    """

    def __init__(
        self, field: str, lower: float | None = None, upper: float | None = None, times: int = 1
    ) -> None:
        super().__init__(field, check_count("times", times))
        if lower is None and upper is None:
            raise ValueError(f"bound of {field}: give lower, upper or both")
        self.lower = -math.inf if lower is None else check_number("lower", lower)
        self.upper = math.inf if upper is None else check_number("upper", upper)
        if self.upper < self.lower:
            raise ValueError(f"upper must be at least lower ({lower:g}), got {upper:g}")

    def _holds(self, values: list[float]) -> bool:
        return all(self.lower <= value <= self.upper for value in values)


@CONDITIONS.register("converged")
class Converged(Condition):
    """Hold if the newest values are nearly equal.

    Args:
        field: name of the metric.
        window: number of the newest values, at least 2.
        tolerance: largest distance from their mean, in the metric's own unit.
        confidence: share of the values that must be within the tolerance, above 0, at most 1.

    Raises:
        ValueError, TypeError: a number out of its range.
    """

    def __init__(
        self,
        field: str,
        window: int = 10,
        tolerance: float = 0.01,
        confidence: float = 0.9,
    ) -> None:
        super().__init__(field, check_count("window", window, low=2))
        self.tolerance = check_number("tolerance", tolerance, low=0)
        self.confidence = check_number("confidence", confidence, low=0, high=1, above=True)

    def _holds(self, values: list[float]) -> bool:
        mean = sum(values) / len(values)
        near = sum(abs(value - mean) <= self.tolerance for value in values)
        return near >= self.confidence * len(values)


def parse_conditions(value: Any, name: str = "until") -> list[Condition]:
    """Conditions from objects or mappings, one or a list of them; else a ValueError."""
    items = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    with errors_of(name, ValueError):
        return [
            item if isinstance(item, Condition) else from_data(CONDITIONS, "condition", item)
            for item in items
        ]


def load_states(
    conditions: Sequence[Condition], states: Sequence[StateDict], name: str = "until"
) -> None:
    """Restore the states of conditions; a ValueError if there were more or fewer."""
    if len(states) != len(conditions):
        raise ValueError(f"{name}: {len(states)} conditions were saved, {len(conditions)} are here")
    for condition, state in zip(conditions, states, strict=True):
        condition.load_state_dict(state)


class Rules(Section):
    """What ends work; the first exhausted budget does, or all conditions holding."""

    max_updates: PositiveCount | None = None
    """gradient updates"""
    max_timesteps: PositiveCount | None = None
    """transitions collected"""
    max_episodes: PositiveCount | None = None
    """episodes ended in all rows together"""
    max_seconds: PositiveNumber | None = None
    """seconds while `StopRules.start` was called last and not `pause`"""
    until: Annotated[list[Any], checked(partial(parse_conditions, name=""))] = []  # noqa: RUF012
    """conditions on metrics, as `parse_conditions` reads them"""


RULES = tuple(Rules.model_fields)


class Ended(Exception):
    """A rule ended the work; what is finished is kept."""


class StopRules:
    """What is used of `Rules`, and which of them ended the work.

    Args:
        **rules: see `Rules`; at least one.

    Attributes:
        reason: what ended the work, None if nothing did.
    """

    def __init__(self, **rules: Any) -> None:
        given = dict(read_as(Rules, rules))
        self.conditions: list[Condition] = given.pop("until")
        self.budgets = {name: budget for name, budget in given.items() if budget is not None}
        if not self.budgets and not self.conditions:
            raise ValueError(f"rules: got none; expected at least one of {', '.join(RULES)}")
        self.reason: str | None = None
        self.earlier_seconds = 0.0
        self._began: float | None = None

    @property
    def seconds(self) -> float:
        """How many seconds count so far."""
        now = 0.0 if self._began is None else time.monotonic() - self._began
        return self.earlier_seconds + now

    def start(self) -> None:
        """Seconds count from now on."""
        self.earlier_seconds, self._began = self.seconds, time.monotonic()

    def pause(self) -> None:
        """Seconds do not count until `start` is called again."""
        self.earlier_seconds, self._began = self.seconds, None

    def check_fields(self, known: Collection[str]) -> None:
        """Raises a ConfigError for a condition on a metric that is none of these."""
        for each in self.conditions:
            if each.field not in known:
                raise ConfigError(f"--stop: until: {unknown_word('field', each.field, known)}")

    def observe(self, values: Metrics) -> None:
        """Has the conditions see new values."""
        for condition in self.conditions:
            condition.observe(values)

    def ended(self, **used: float) -> bool:
        """Whether the work shall end, so much of each budget being used; sets `reason`.

        Seconds are known here, and a budget that is not named is not looked at.
        """
        used = {"max_seconds": self.seconds, **used}
        if self.reason is None:
            for name, budget in self.budgets.items():
                if used.get(name, 0) >= budget:
                    self.reason = f"{name} {budget:g} reached"
                    return True
            if self.conditions and all(condition.met for condition in self.conditions):
                self.reason = f"goal reached: {', '.join(each.field for each in self.conditions)}"
        return self.reason is not None


def read_stop_rules(given: Sequence[str], known: Collection[str] = RULES) -> StopRules:
    """The rules of a command line, whose seconds count from now on.

    Args:
        given: at least one ``rule=value``, the value in YAML; ``until`` may come several times.
        known: the rules that the command can follow.

    Raises:
        ValueError: there is no such rule, it is not one of this command, or its value is wrong.
    """
    values: dict[str, Any] = {}
    for text in given:
        name, value = split_setting(text, option="--stop")
        if name not in known:
            raise ConfigError(f"--stop: {unknown_word('rule', name, known)}")
        if name == "until":
            value = [*values.get(name, []), *(value if isinstance(value, list) else [value])]
        values[name] = value
    with errors_of("--stop", ValueError):
        rules = StopRules(**values)
    rules.start()
    return rules
