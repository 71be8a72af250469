"""Rewards of one move, for either role.

Every named reward is a game of opposed interests: the agent gets the negative of the host.

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

from resgym.game.spec import Role
from resgym.game.state import GameState


@dataclass(frozen=True)
class Transition:
    """One move of N games, as a reward sees it.

    Attributes:
        before: positions before the move.
        coords: bool [N, D], the host's set.
        axis: int64 [N], the agent's axis.
        after: positions after the move.
        finished: bool [N], the move ended the game.
        role: whose reward is asked for.
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
"""Host's reward by name; the agent's is the negative."""


def check_reward(reward: str | RewardFunction) -> None:
    """Raises ValueError or TypeError if a reward is neither a name of `REWARDS` nor a callable."""
    if isinstance(reward, str) and reward not in REWARDS:
        raise ValueError(f"reward must be one of {sorted(REWARDS)} or a callable, got {reward!r}")
    if not isinstance(reward, str) and not callable(reward):
        raise TypeError(f"reward must be a name or a callable, got {reward!r}")


def role_reward(reward: str | RewardFunction, transition: Transition) -> Tensor:
    """float32 [N]: the reward of ``transition.role``, which a callable returns itself."""
    if isinstance(reward, str):
        value = REWARDS[reward](transition)
        return value if transition.role == "host" else -value
    value = reward(transition)
    if not isinstance(value, Tensor) or value.shape != transition.axis.shape:
        got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"reward must return a tensor [{len(transition.axis)}], got {got}")
    return value.to(torch.float32)
