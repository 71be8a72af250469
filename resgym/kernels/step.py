"""A whole step or reset of an environment as one operation: what goes in and what comes out.

A backend that offers it plays the moves of all rows, rewards them, ends and starts episodes and
observes, in one pass. The environments put the same step together from smaller operations; that is
the reference, and the way for whatever a backend does not know.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from resgym.game.spec import GameSpec

__all__ = [
    "GIVEN",
    "MODES",
    "NO_LIMIT",
    "ON_ILLEGAL",
    "REWARDS",
    "SEATS",
    "Fields",
    "Played",
    "Seat",
    "Started",
    "StepPlan",
    "opponent_number",
]

Seat = Literal["host", "agent", "both"]

# What a fused kernel knows; it takes the index.
SEATS = ("host", "agent", "both")
REWARDS = ("terminal", "step", "survival", "points")
ON_ILLEGAL = ("error", "noop", "penalty", "terminate")
MODES = ("SAME_STEP", "NEXT_STEP", "DISABLED")

GIVEN = "given"
"""Name of an opponent whose choices are handed in, where a backend takes them."""

NO_LIMIT = 2**62
"""Stands for no limit of steps."""


class StepPlan(NamedTuple):
    """Everything about a step that is the same for all rows.

    Attributes:
        spec: the game.
        start_spec: sizes of random starts, which may be smaller.
        seat: whose actions are given; ``both`` takes the half-move of whoever is to play.
        opponent: name of the scripted player in the other seat, or `GIVEN`; None for ``both``.
        reward: name of the reward.
        invalid_action: ``error``, ``noop``, ``penalty`` or ``terminate``.
        autoreset_mode: ``SAME_STEP``, ``NEXT_STEP`` or ``DISABLED``.
        max_episode_steps: steps after which an episode is truncated, or None.
        scale_observation: divide observed points by the largest coordinate.
    """

    spec: GameSpec
    start_spec: GameSpec
    seat: Seat
    opponent: str | None
    reward: str
    invalid_action: str
    autoreset_mode: str
    max_episode_steps: int | None
    scale_observation: bool


def opponent_number(plan: StepPlan, agents: tuple[str, ...], hosts: tuple[str, ...]) -> int | None:
    """Which of the players that a backend has compiled answers; None if it cannot play the plan.

    Args:
        plan: the plan.
        agents: the agents that it has.
        hosts: the hosts that it has.

    Returns:
        The index in ``agents`` or ``hosts``, whichever is the other seat; 0 for both seats.
    """
    others: tuple[str | None, ...] = {"host": agents, "agent": hosts, "both": (None,)}[plan.seat]
    if (
        plan.spec.polytope != "dominance"
        or plan.start_spec.max_num_points < 2
        or plan.opponent not in others
        or plan.reward not in REWARDS
    ):
        return None
    return others.index(plan.opponent)


class Fields(NamedTuple):
    """What N rows of an environment remember from one step to the next.

    A backend takes tensors, or the fields as a step of its own returned them.

    Attributes:
        points: int64 [N, P, D] of the positions.
        counts: int64 [N], alive points of the positions.
        coords: bool [N, D], sets that await an answer.
        half_moves: int64 [N], half-moves played in the episode.
        seed: int64 [N], row seeds.
        episode: int64 [N], episodes started.
        key: int64 [N], key of the episode's random numbers.
        returns: float32 [N], sum of the episode's rewards.
        lengths: int64 [N], steps of the episode.
        ended: bool [N], the episode has ended and was not restarted.
    """

    points: Any
    counts: Any
    coords: Any
    half_moves: Any
    seed: Any
    episode: Any
    key: Any
    returns: Any
    lengths: Any
    ended: Any


class Played(NamedTuple):
    """What a step led to; new arrays, which the caller owns.

    Attributes:
        fields: the fields after the step, tensors or arrays. Given tensors are unchanged; fields
            handed back as they were returned belong to the backend again.
        memory: to be handed to the next step from these fields, which it makes faster.
        points: float32 [N, P, D], the observed points.
        coords: int8 [N, D], the observed sets.
        reward: float32 [N].
        rewards: float32 [N, 2], the rewards of both roles; None unless the seat is ``both``.
        terminated: bool [N].
        truncated: bool [N].
        overflow: bool [N].
        ended: bool [N], terminated or truncated; None if no row is.
        final_points: float32 [N, P, D], observed before the restarts of SAME_STEP; None without.
        final_coords: int8 [N, D], likewise.
        episode_returns: float32 [N], before the restarts; None if no row has ended.
        episode_lengths: int64 [N], likewise.
    """

    fields: Fields
    memory: Any
    points: Any
    coords: Any
    reward: Any
    rewards: Any
    terminated: Any
    truncated: Any
    overflow: Any
    ended: Any
    final_points: Any
    final_coords: Any
    episode_returns: Any
    episode_lengths: Any


class Started(NamedTuple):
    """What the start of episodes led to; new arrays, which the caller owns.

    Attributes:
        fields: the fields afterwards, as for `Played`.
        memory: to be handed to the next step from these fields, which it makes faster.
        points: float32 [N, P, D], the observed points of all rows.
        coords: int8 [N, D], the observed sets.
    """

    fields: Fields
    memory: Any
    points: Any
    coords: Any
