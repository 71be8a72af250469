"""One role learns until it gets no better, then the other: `mode: alternating`.

Unlike the schedules of `update_schedule.py`, this one follows what is measured, so checkpoints hold
where it stands. `docs/two_player.md` shows it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from sb3_ext.config.checks import check_count
from sb3_ext.runs.stopping import load_states, parse_conditions
from sb3_ext.two_player.update_schedule import UPDATE_MODES, UpdateSchedule


@UPDATE_MODES.register("alternating")
class Phases(UpdateSchedule):
    """Phases of training, in which the roles take turns; training ends after the last one.

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

    Attributes:
        number: phases that are over.
    """

    def __init__(
        self, first: str, phases: int, max_steps: int, until: Any = None, fresh: bool = False
    ) -> None:
        self.first, self.fresh = first, fresh
        self.phases = check_count("phases", phases)
        self.max_steps = check_count("max_steps", max_steps)
        self.number, self._began = 0, 0
        self._until = [] if until is None else until
        self._conditions = parse_conditions(copy.deepcopy(self._until))

    @property
    def fields(self) -> set[str]:
        """What the conditions are about."""
        return {condition.field for condition in self._conditions}

    def is_due(self, role: str, step: int) -> bool:
        """As in the base; for later steps, if no phase ends before `max_steps`."""
        number = self.number + (step - self._began) // self.max_steps
        return number < self.phases and (role == self.first) == (number % 2 == 0)

    def steps_left(self, step: int) -> int:
        """Steps of all phases that are left at most."""
        return self._began + (self.phases - self.number) * self.max_steps - step

    def runs_out(self, step: int) -> bool:
        """Whether the phase has had all its steps."""
        return step - self._began >= self.max_steps

    def observe(self, values: Mapping[str, float]) -> None:
        """Takes note of an evaluation."""
        for condition in self._conditions:
            condition.observe(values)

    def advance(self, step: int) -> bool:
        """Begins the next phase if one is over after so many steps; says whether it did."""
        met = self._conditions and all(condition.met for condition in self._conditions)
        if not (met or self.runs_out(step)):
            return False
        self.number, self._began = self.number + 1, step
        self._conditions = parse_conditions(copy.deepcopy(self._until))
        return True

    def state_dict(self) -> dict[str, Any]:
        """Where it stands, as plain data."""
        noted = [condition.state_dict() for condition in self._conditions]
        return {"number": self.number, "began": self._began, "conditions": noted}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state_dict` was taken."""
        self.number, self._began = state["number"], state["began"]
        load_states(self._conditions, state["conditions"])
