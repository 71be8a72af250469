"""The rules of the game as pure functions on batches: no seats, opponents or resets."""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from resgym.game.actions import action_axes, coords_to_action, host_action_table, pair_to_action
    from resgym.game.rewards import (
        REWARDS,
        RewardFunction,
        Transition,
        register_reward,
        role_reward,
    )
    from resgym.game.rng import RowRandom, Stream, derive_seed
    from resgym.game.rules import move, observe_points, random_starts
    from resgym.game.spec import MAX_COORDINATE, GameSpec, Role
    from resgym.game.state import GameState, state_from_points, where_state
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "actions": "action_axes coords_to_action host_action_table pair_to_action",
            "rewards": "REWARDS RewardFunction Transition register_reward role_reward",
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
    "coords_to_action",
    "derive_seed",
    "host_action_table",
    "move",
    "observe_points",
    "pair_to_action",
    "random_starts",
    "register_reward",
    "role_reward",
    "state_from_points",
    "where_state",
]
