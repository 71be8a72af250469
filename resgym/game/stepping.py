"""The data that the reference and all kernels share: plan, state of N games, results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from resgym.game.rewards import RewardFunction
from resgym.game.rng import RowRandom
from resgym.game.spec import GameSpec, Point
from resgym.game.state import BASIC, GameState, Rule, rule_of

Seat = Literal["host", "agent", "both"]

# Kernels use the index.
SEATS = ("host", "agent", "both")
INVALID_ACTIONS = ("error", "noop", "penalty", "terminate")
AUTORESET_MODES = ("SAME_STEP", "NEXT_STEP", "DISABLED")

INVALID_ACTION_REWARD = -1.0
"""Reward of an illegal action with ``penalty`` and ``terminate``."""

NO_LIMIT = 2**62


@dataclass(frozen=True, eq=False)
class StepPlan:
    """Everything about a step that is the same for all rows.

    Two plans are equal only if they are the same object.

    Attributes:
        spec: the game.
        start_spec: sizes of random starts; they may be smaller.
        seat: the seat whose actions are given; ``both`` takes the half-move of the side to move.
        reward: name of the reward, or a function.
        invalid_action: ``error``, ``noop``, ``penalty`` or ``terminate``.
        autoreset_mode: ``SAME_STEP``, ``NEXT_STEP`` or ``DISABLED``.
        max_episode_steps: steps after which an episode is truncated, or None.
        scale_observation: divide observed points by the largest coordinate.
        opponent: name of the scripted player of the other seat, which a backend may play itself;
            None: the opponents must be asked.
        starts: positions that episodes start from, drawn uniformly; None: random ones.
        prepared: what backends keep about the plan, which goes with it.
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
    starts: GameState | None = None
    prepared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def num_actions(self) -> int:
        """Number of actions A of the seat; ``both`` has one space for both roles."""
        host, agent = self.spec.num_host_actions, self.spec.dimension
        return {"host": host, "agent": agent, "both": max(host, agent)}[self.seat]

    @property
    def step_limit(self) -> int:
        """Steps after which an episode is truncated."""
        return NO_LIMIT if self.max_episode_steps is None else self.max_episode_steps

    @property
    def may_refuse(self) -> bool:
        """Whether a step can be refused: for an illegal action, or for an ended row."""
        return self.invalid_action == "error" or self.autoreset_mode == "DISABLED"


class RefusedStep(Exception):
    """An action is illegal with ``error``, or a row has ended in DISABLED; nothing was played."""


Array = Tensor | np.ndarray


class EpisodeState(NamedTuple):
    """The state of N rows between two steps.

    Attributes:
        points: int64 [N, P, D] of the positions.
        counts: int64 [N], alive points of the positions.
        coords: bool [N, D], the set that the host has chosen and the agent has not answered; all
            False on the host's turn.
        half_moves: int64 [N], half-moves played in the episode.
        seed: int64 [N], row seeds.
        episode: int64 [N], episodes started since the row was seeded, from 0; -1 before.
        key: int64 [N], key of the episode's random numbers.
        returns: float32 [N], sum of the episode's rewards.
        lengths: int64 [N], steps of the episode.
        ended: bool [N], the episode has ended and has not restarted.
        rule: rule of the game; kernels know the default rule only.
    """

    points: Tensor
    counts: Tensor
    coords: Tensor
    half_moves: Tensor
    seed: Tensor
    episode: Tensor
    key: Tensor
    returns: Tensor
    lengths: Tensor
    ended: Tensor
    rule: Rule = BASIC

    @classmethod
    def empty(cls, num_games: int, spec: GameSpec, device: torch.device) -> EpisodeState:
        """Return N rows before their first episode."""
        rule = rule_of(spec)
        shape = (num_games, spec.max_num_points + rule.extra_rows, spec.dimension)
        zeros = torch.zeros(num_games, dtype=torch.int64, device=device)
        return cls(
            points=torch.full(shape, -1, device=device),
            counts=zeros + 1,
            coords=torch.zeros(num_games, spec.dimension, dtype=torch.bool, device=device),
            half_moves=zeros,
            seed=zeros,
            episode=zeros - 1,
            key=RowRandom.for_episode(zeros, zeros - 1).key,
            returns=torch.zeros(num_games, dtype=torch.float32, device=device),
            lengths=zeros,
            ended=torch.zeros(num_games, dtype=torch.bool, device=device),
            rule=rule,
        )

    def tensors(self) -> EpisodeState:
        """Return the state itself; see `Games`."""
        return self

    @property
    def position(self) -> GameState:
        """The positions."""
        return GameState(self.points, self.counts, self.rule)

    def point_lists(self) -> list[list[Point]]:
        """Return the alive points of every game as Python integers."""
        return self.position.point_lists()

    def rng(self, stream: int) -> RowRandom:
        """Return the rows' random numbers at their half-move, for one `Stream`."""
        return RowRandom(self.key).at(self.half_moves, stream)


class Games(Protocol):
    """A state in the form of a backend, which may write to it after stepping from it."""

    def tensors(self) -> EpisodeState:
        """Return the state as tensors that are never written to again."""
        ...


Ask = Callable[[EpisodeState, "Tensor | None", RowRandom, "Tensor | None"], Tensor]
"""Ask the other seat: ``ask(games, coords, rng, rows)``.

``games`` are all N games, ``coords`` bool [N, D] the sets to answer (None if hosts are asked) and
``rng`` the random numbers of all N. ``rows`` int64 [M] are the rows to answer; None: all. Returns
int64 [M], every entry legal.
"""


class StepResult(NamedTuple):
    """The result of a step, or of starting episodes; new arrays, which the caller owns.

    Attributes:
        games: the state after it.
        points: float32 [N, P, D], the observed points.
        coords: int8 [N, D], the observed sets.
        reward: float32 [N].
        rewards: float32 [N, 2], of both roles (host, agent); None unless the seat is ``both``.
        terminated: bool [N].
        truncated: bool [N].
        overflow: bool [N].
        ended: bool [N], terminated or truncated.
        final_points: float32 [N, P, D], observed before the restarts of SAME_STEP; may be None if
            no row has ended.
        final_coords: int8 [N, D], likewise.
        episode_returns: float32 [N], before the restarts.
        episode_lengths: int64 [N], likewise.
        some_ended: False if it is known that no row has ended.
    """

    games: Games
    points: Array
    coords: Array
    reward: Array
    rewards: Array | None
    terminated: Array
    truncated: Array
    overflow: Array
    ended: Array
    final_points: Array | None
    final_coords: Array | None
    episode_returns: Array
    episode_lengths: Array
    some_ended: bool = True
