"""The rules of the game as pure functions on batches: no seats, opponents or resets."""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from resgym.game.actions import action_axes, host_action_table
    from resgym.game.rewards import REWARDS, RewardFunction, Transition, role_reward
    from resgym.game.rng import RowRandom, Stream, derive_seed
    from resgym.game.rules import move, observe_points, random_starts
    from resgym.game.spec import MAX_COORDINATE, GameSpec, Role
    from resgym.game.state import GameState, state_from_points, where_state
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "actions": "action_axes host_action_table",
            "rewards": "REWARDS RewardFunction Transition role_reward",
            "rng": "RowRandom Stream derive_seed",
            "rules": "move observe_points random_starts",
            "spec": "MAX_COORDINATE GameSpec Role",
            "state": "GameState state_from_points where_state",
        },
    )

__all__ = [
    "MAX_COORDINATE",
    "REWARDS",
    "GameSpec",
    "GameState",
    "RewardFunction",
    "Role",
    "RowRandom",
    "Stream",
    "Transition",
    "action_axes",
    "derive_seed",
    "host_action_table",
    "move",
    "observe_points",
    "random_starts",
    "role_reward",
    "state_from_points",
    "where_state",
]
