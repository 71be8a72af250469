"""The differences between the rules: legal sets and answers, the end of a game, what is kept.

A `GameState` carries its rule. Rows behind the P rows of points hold further data of a rule; code
that reads alive points never sees them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from resgym.game.spec import GameSpec, RuleName, host_action_table

_ABSENT = 2**61  # with ten coordinates on top it still fits in int64


@dataclass(frozen=True)
class Rule:
    """The default rule, and the questions that every rule answers.

    Positions are points int64 [N, P, D] with their numbers int64 [N]; sets are bool [N, D].

    Attributes:
        name: name of the rule.
        least_axes: least number of axes of a host's set.
        extra_rows: number of rows behind those of the points.
        unit: subtracted from the coordinate that a move changes.
    """

    name: ClassVar[RuleName] = "basic"
    least_axes = 2
    extra_rows = 0
    unit: int = 0

    def finished(self, points: Tensor, count: Tensor) -> Tensor:
        """Return bool [N]: the game is over."""
        return count <= 1

    def permits(self, points: Tensor, count: Tensor, coords: Tensor) -> Tensor:
        """Return bool [N]: the host may choose this set."""
        return coords.sum(1) >= self.least_axes

    def legal_sets(self, points: Tensor, count: Tensor) -> Tensor | None:
        """Return bool [N, A]: the actions that a host may take; all of them in a finished game.

        None if all are legal in every position.
        """
        return None

    def answers(self, points: Tensor, coords: Tensor) -> Tensor:
        """Return bool [N, D]: the axes of a set that the agent may choose."""
        return coords


@dataclass(frozen=True)
class Polyhedra(Rule):
    """Hironaka's polyhedra game; coordinates are multiples of 1/unit.

    A set is permissible if in every point the sum over it is at least one unit. The game is over
    when all coordinates of a point sum to less: then no set is permissible.
    """

    name = "polyhedra"
    least_axes = 1

    def finished(self, points: Tensor, count: Tensor) -> Tensor:
        """See `Rule`."""
        return (alive_rows(points, count) & (points.sum(2) < self.unit)).any(1)

    def permits(self, points: Tensor, count: Tensor, coords: Tensor) -> Tensor:
        """See `Rule`."""
        enough = (points * coords[:, None]).sum(2) >= self.unit
        return (enough | ~alive_rows(points, count)).all(1)

    def legal_sets(self, points: Tensor, count: Tensor) -> Tensor:
        """See `Rule`."""
        sets = host_action_table(points.shape[2], points.device, self.least_axes)
        legal = torch.stack([self.permits(points, count, each[None]) for each in sets], 1)
        # If the set of all axes is not permissible, no set is.
        return legal | ~legal[:, -1:]


@dataclass(frozen=True)
class Thom(Rule):
    """The game on Thom polynomials: axes have weights, and one point is distinguished.

    Behind the points come a row of weights, 0 or more, and the distinguished point, which is -1
    throughout once it is no longer a vertex. The agent takes an axis of least weight in the set,
    and the weights of the other axes of the set fall by it. The game is over when one point is left
    or the distinguished one is lost.
    """

    name = "thom"
    extra_rows = 2

    def finished(self, points: Tensor, count: Tensor) -> Tensor:
        """See `Rule`."""
        return (count <= 1) | (points[:, -1, 0] < 0)

    def answers(self, points: Tensor, coords: Tensor) -> Tensor:
        """See `Rule`."""
        weights = torch.where(coords, points[:, -2], _ABSENT)
        return coords & (weights == weights.amin(1, keepdim=True))


BASIC = Rule()


def rule_of(spec: GameSpec) -> Rule:
    """Return the rule of a game."""
    if spec.rule == "polyhedra":
        return Polyhedra(spec.unit)
    return Thom() if spec.rule == "thom" else BASIC


def alive_rows(points: Tensor, count: Tensor) -> Tensor:
    """Return bool [N, P]: which of the rows int64 [N, P, D] hold a point."""
    return torch.arange(points.shape[1], device=points.device) < count[:, None]
