"""Rewards of one move, for either role.

Every named reward is zero-sum: the agent gets the negative of the host's reward.

    name      host gets
    terminal  +1 on the move that ends the game, else 0
    step      -1 on every move
    survival  -1 on every move that does not end the game, else 0
    points    the number of points that the move removed
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from resgym.game.spec import Role, check_choice, check_function
from resgym.game.state import GameState
from resgym.texts import shown


@dataclass(frozen=True)
class Transition:
    """One move of N games, for a reward function.

    Attributes:
        before: positions before the move.
        coords: bool [N, D], the host's set.
        axis: int64 [N], the agent's axis.
        after: positions after the move.
        finished: bool [N], the move ended the game.
        role: the role whose reward is asked for.
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
    """Register a function under a free name (decorator).

    It returns the host's reward float32 [N] of a transition for either role; the agent's reward is
    the negative.
    """
    if not isinstance(name, str) or not name or name in REWARDS:
        raise ValueError(f"name must be new, not one of {sorted(REWARDS)}, got {shown(name)}")

    def decorator(function: RewardFunction) -> RewardFunction:
        check_function(name, function, "transition")
        REWARDS[name] = function
        return function

    return decorator


def check_reward(reward: str | RewardFunction) -> None:
    """Raise ValueError or TypeError if a reward is neither a name of `REWARDS` nor a function."""
    if isinstance(reward, str):
        check_choice("reward", reward, sorted(REWARDS))
    else:
        check_function("reward", reward, "transition", instead="a name or ")


def role_reward(
    reward: str | RewardFunction, transition: Transition, played: Tensor | None = None
) -> Tensor:
    """Return float32 [N]: the reward of ``transition.role``, which a callable computes itself.

    Args:
        reward: a name of `REWARDS`, or a function.
        transition: the move.
        played: bool [N], the games that were played; the others get 0. None: all games.

    Raises:
        ValueError: a function, registered or not, returns another shape, complex numbers, or NaN or
            an infinity for a game that was played.
    """
    function = REWARDS[reward] if isinstance(reward, str) else reward
    value = function(transition)
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
