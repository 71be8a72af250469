"""What a step of N games is asked for: the words that the reference and all kernels share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from resgym.game.rewards import RewardFunction
from resgym.game.spec import GameSpec

__all__ = [
    "AUTORESET_MODES",
    "INVALID_ACTIONS",
    "INVALID_ACTION_REWARD",
    "NO_LIMIT",
    "SEATS",
    "RefusedStep",
    "Seat",
    "StepPlan",
]

Seat = Literal["host", "agent", "both"]

# Kernels take the index.
SEATS = ("host", "agent", "both")
INVALID_ACTIONS = ("error", "noop", "penalty", "terminate")
AUTORESET_MODES = ("SAME_STEP", "NEXT_STEP", "DISABLED")

INVALID_ACTION_REWARD = -1.0
"""Reward of an illegal action with ``penalty`` and ``terminate``."""

NO_LIMIT = 2**62
"""Stands for no limit of steps."""


@dataclass(frozen=True, eq=False)
class StepPlan:
    """Everything about a step that is the same for all rows.

    Two plans are equal only if they are one object, so that looking up what a backend has made of
    a plan costs nothing.

    Attributes:
        spec: the game.
        start_spec: sizes of random starts, which may be smaller.
        seat: whose actions are given; ``both`` takes the half-move of whoever is to play.
        reward: name of the reward, or a function.
        invalid_action: ``error``, ``noop``, ``penalty`` or ``terminate``.
        autoreset_mode: ``SAME_STEP``, ``NEXT_STEP`` or ``DISABLED``.
        max_episode_steps: steps after which an episode is truncated, or None.
        scale_observation: divide observed points by the largest coordinate.
        opponent: name of the scripted player in the other seat, whom a backend may play itself;
            None: the opponents have to be asked.
    """

    spec: GameSpec
    start_spec: GameSpec
    seat: Seat = "both"
    reward: str | RewardFunction = "terminal"
    invalid_action: str = "error"
    autoreset_mode: str = "SAME_STEP"
    max_episode_steps: int | None = None
    scale_observation: bool = True
    opponent: str | None = None

    @property
    def num_actions(self) -> int:
        """Number of actions A of the seat; ``both`` has one space for both roles."""
        host, agent = self.spec.num_host_actions, self.spec.dimension
        return {"host": host, "agent": agent, "both": max(host, agent)}[self.seat]

    @property
    def may_refuse(self) -> bool:
        """Whether a step can be refused: for an illegal action, or for a row that has ended."""
        return self.invalid_action == "error" or self.autoreset_mode == "DISABLED"


class RefusedStep(Exception):
    """An action is illegal with ``error``, or a row has ended in DISABLED; nothing was played."""
