"""What the players did in the last step, for frames."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from resgym.game.actions import action_axes
from resgym.game.stepping import EpisodeState, StepPlan


class LastStep(NamedTuple):
    """A step of N rows.

    Attributes:
        plan: the plan of the step.
        before: the games before it.
        actions: int64 [N].
        overflow: bool [N], rows whose move was not played.
        answer: int64 [N], axes of the agents that were asked; None if none was.
    """

    plan: StepPlan
    before: EpisodeState
    actions: Tensor
    overflow: Tensor
    answer: Tensor | None

    def move(self, row: int, after: EpisodeState) -> tuple[tuple[int, ...], int] | None:
        """Return the set and the axis that a row played; None if it did not complete a move.

        ``after`` are the games after the step.
        """
        plan, before, action = self.plan, self.before, int(self.actions[row])
        if after.half_moves[row] <= before.half_moves[row] or self.overflow[row]:
            return None
        if self.answer is not None:
            sets = action_axes(plan.spec.dimension, plan.spec.least_axes)
            return sets[action], int(self.answer[row])
        axes = tuple(before.coords[row].nonzero()[:, 0].tolist())
        return (axes, action) if axes else None
