"""The data that the reference and all kernels share: rewards, plan, state of N games, results.

Rewards are those of one move, for either role. Every named reward is zero-sum: the agent gets the
negative of the host's reward.

    name      host gets
    terminal  +1 on the move that ends the game, else 0
    step      -1 on every move
    survival  -1 on every move that does not end the game, else 0
    points    the number of points that the move removed
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from resgym.game.rng import RowRandom
from resgym.game.spec import (
    IMPORTED,
    GameSpec,
    Point,
    Role,
    check_choice,
    check_function,
    register,
)
from resgym.game.state import BASIC, GameState, Rule


class Transition(NamedTuple):
    """One move of N games, for a reward function.

    Attributes:
        before: positions before the move.
        coords: bool [N, D], the host's set.
        axis: int64 [N], the agent's axis.
        after: positions after the move.
        finished: bool [N], the move ended the game.
        role: the role whose reward is asked for; always ``host`` for a registered reward.
    """

    before: GameState
    coords: Tensor
    axis: Tensor
    after: GameState
    finished: Tensor
    role: Role


RewardFunction = Callable[[Transition], Tensor]


REWARDS: dict[str, RewardFunction] = {
    "terminal": lambda move: move.finished.float(),
    "step": lambda move: torch.full_like(move.finished, -1.0, dtype=torch.float32),
    "survival": lambda move: move.finished.float() - 1.0,
    "points": lambda move: (move.before.count - move.after.count).float(),
}
"""The host's reward by name; the agent's is the negative."""

REWARD_NAMES = tuple(REWARDS)
"""The built-in rewards, which kernels know by their index here. Registered rewards are never among
them."""


def register_reward(name: str) -> Callable[[RewardFunction], RewardFunction]:
    """Register a reward function under a free name (decorator).

    The function takes a `Transition` whose ``role`` is ``host`` and returns the host's rewards,
    float32 [N]. The agent gets the negative.

    Raises:
        ValueError, TypeError: the name is taken, or the function does not take a transition.
    """
    enter = register(REWARDS, "reward", name)

    def decorator(function: RewardFunction) -> RewardFunction:
        check_function(name, function, "transition")
        return enter(function)

    return decorator


def check_reward(reward: str | RewardFunction) -> None:
    """Raise ValueError or TypeError if a reward is neither a name of `REWARDS` nor a function."""
    if isinstance(reward, str):
        check_choice("reward", reward, REWARDS, IMPORTED)
    else:
        check_function("reward", reward, "transition", instead="a name or ")


def role_reward(
    reward: str | RewardFunction, transition: Transition, played: Tensor | None = None
) -> Tensor:
    """Return float32 [N]: the reward of ``transition.role``.

    A named reward is asked for the host's, and the agent gets the negative. A function that was
    not registered computes the reward of either role itself.

    Args:
        reward: a name of `REWARDS`, or a function.
        transition: the move.
        played: bool [N], the games that were played; the others get 0. None: all games.

    Raises:
        ValueError: a function, registered or not, returns another shape, complex numbers, or NaN or
            an infinity for a game that was played.
    """
    if isinstance(reward, str):
        value = REWARDS[reward](transition._replace(role="host"))
    else:
        value = reward(transition)
    if not isinstance(value, Tensor) or value.shape != transition.axis.shape:
        got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"reward must return a tensor [{len(transition.axis)}], got {got}")
    if value.is_complex():
        raise ValueError(f"reward: got {value.dtype}; expected real numbers")
    value = value.to(torch.float32)
    if isinstance(reward, str) and transition.role == "agent":
        value = 0.0 - value  # -value would make -0.0 of 0
    if played is not None:
        value = torch.where(played, value, 0.0)
    if reward not in REWARD_NAMES and not value.isfinite().all():
        game = int((~value.isfinite()).nonzero()[0])
        raise ValueError(
            f"reward: got {float(value[game])} for game {game}; expected finite numbers"
        )
    return value


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
        max_episode_steps: steps after which an episode is truncated.
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
    max_episode_steps: int = NO_LIMIT
    scale_observation: bool = True
    opponent: str | None = None
    starts: GameState | None = None
    prepared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def num_actions(self) -> int:
        """Number of actions A of the seat; ``both`` has one space for both roles."""
        host = self.spec.num_host_actions
        agent = self.spec.dimension
        return {"host": host, "agent": agent, "both": max(host, agent)}[self.seat]


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
        rule: Rule = spec.kind(spec)
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
