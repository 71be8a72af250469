"""Which role is updated in which step of the trainer: `training.updates` of a configuration.

`docs/two_player.md` shows the forms. Steps are counted over all calls of `train` and over resumes,
so whose turn it is goes on where it was.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from sb3_ext.config.arguments import from_data
from sb3_ext.config.checks import check_count
from sb3_ext.config.registry import Registry, unknown_word
from sb3_ext.runs.stopping import load_states, parse_conditions

MODES: Registry[type[Turns]] = Registry("mode")


@MODES.register("interleaved")
class Turns:
    """Every role in every step.

    Attributes:
        roles: names of roles that were given.
        fields: what its conditions are about.
        number: phases that are over.
        fresh: whether a role begins each of its phases as a new one.
    """

    roles: Sequence[str] = ()
    fields: frozenset[str] = frozenset()
    number = 0
    fresh = False

    def is_due(self, role: str, step: int) -> bool:
        """Whether a role is updated in a step; ``step``: those made so far, from 0."""
        return True

    def last_step(self, end: int) -> int:
        """The step with which training ends, at most `end`."""
        return end

    def runs_out(self, step: int) -> bool:
        """Whether a phase has had all its steps."""
        return False

    def observe(self, values: Mapping[str, float]) -> None:
        """Takes note of an evaluation."""

    def advance(self, step: int) -> bool:
        """Begins the next phase if one is over after so many steps; says whether it did."""
        return False

    def state_dict(self) -> dict[str, Any]:
        """Where it stands, as plain data."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state_dict` was taken."""


@MODES.register("windows")
class Windows(Turns):
    """Each role in the same steps of every period.

    Args:
        period: steps.
        windows: by role, ``[start, stop]`` with 0 <= start < stop <= period: it is updated in
            the steps of a period from the first up to, but without, the second.
    """

    def __init__(self, period: int, windows: Mapping[str, Any]) -> None:
        self.period, self.windows = check_count("period", period), dict(windows)
        self.roles = [*self.windows]
        for role, window in self.windows.items():
            start, stop = (check_count(f"windows.{role}", each, 0) for each in window)
            self.windows[role] = (start, stop)
            if not start < stop <= self.period:
                raise ValueError(
                    f"windows.{role}: got {[start, stop]}; expected start < stop <= {self.period}"
                )

    def is_due(self, role: str, step: int) -> bool:  # noqa: D102
        start, stop = self.windows[role]
        return bool(start <= step % self.period < stop)


@MODES.register("alternating")
class Alternating(Turns):
    """Phases in which the roles take turns; training ends after the last one.

    Args:
        first: the role whose phase is the first.
        phases: how many there are.
        max_steps: steps after which a phase ends in any case.
        until: conditions on evaluations, which must all hold to end a phase before (see
            `sb3_ext.runs.stopping`). Its values are ``<measure>/<pair>`` and
            ``<measure>/score``, the score of the role that learns, from this phase alone. None:
            a phase always has all its steps.
        fresh: whether a role begins each of its phases as a new one, with networks, optimiser,
            experience and schedules from the start; else it goes on where its last phase ended.
    """

    def __init__(
        self, first: str, phases: int, max_steps: int, until: Any = None, fresh: bool = False
    ) -> None:
        self.roles, self.fresh = [first], fresh
        self.phases = check_count("phases", phases)
        self.max_steps = check_count("max_steps", max_steps)
        self.number, self._began = 0, 0
        self._until = [] if until is None else until
        self._conditions = parse_conditions(copy.deepcopy(self._until))
        self.fields = frozenset(condition.field for condition in self._conditions)

    def is_due(self, role: str, step: int) -> bool:
        """As in the base; for later steps, if no phase ends before `max_steps`."""
        number = self.number + (step - self._began) // self.max_steps
        return number < self.phases and (role == self.roles[0]) == (number % 2 == 0)

    def last_step(self, end: int) -> int:  # noqa: D102
        return min(end, self._began + (self.phases - self.number) * self.max_steps)

    def runs_out(self, step: int) -> bool:  # noqa: D102
        return step - self._began >= self.max_steps

    def observe(self, values: Mapping[str, float]) -> None:  # noqa: D102
        for condition in self._conditions:
            condition.observe(values)

    def advance(self, step: int) -> bool:  # noqa: D102
        met = self._conditions and all(condition.met for condition in self._conditions)
        if not (met or self.runs_out(step)):
            return False
        self.number, self._began = self.number + 1, step
        self._conditions = parse_conditions(copy.deepcopy(self._until))
        return True

    def state_dict(self) -> dict[str, Any]:  # noqa: D102
        noted = [condition.state_dict() for condition in self._conditions]
        return {"number": self.number, "began": self._began, "conditions": noted}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: D102
        self.number, self._began = state["number"], state["began"]
        load_states(self._conditions, state["conditions"])


def read_turns(data: Any, roles: Sequence[str]) -> Turns:
    """Whose turn it is, from `training.updates` of a configuration.

    Raises:
        ValueError, TypeError: a key is missing or unknown, or a value is out of range.
    """
    turns = from_data(MODES, "mode", data)
    for role in turns.roles:
        if role not in roles:
            raise ValueError(unknown_word("role", role, roles))
    if isinstance(turns, Windows) and len(turns.roles) < len(roles):
        raise ValueError(f"windows: got {turns.roles}; expected all of {list(roles)}")
    return turns
