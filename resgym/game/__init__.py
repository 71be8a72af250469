"""The rule of the game as pure functions on batches: no seats, no opponents, no resets."""

from resgym.game.actions import action_axes, coords_to_action, host_action_table, pair_to_action
from resgym.game.rewards import (
    REWARDS,
    RewardFunction,
    Transition,
    register_reward,
    role_reward,
)
from resgym.game.rng import RowRandom, Stream, derive_seed
from resgym.game.rules import is_legal, move, observe_points, random_starts
from resgym.game.spec import MAX_COORDINATE, GameSpec, Role
from resgym.game.state import GameState, state_from_points, where_state

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
    "is_legal",
    "move",
    "observe_points",
    "pair_to_action",
    "random_starts",
    "register_reward",
    "role_reward",
    "state_from_points",
    "where_state",
]
