"""The rules of the game as pure functions on batches: no seats, opponents or resets."""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from resgym.game.actions import action_axes, host_action_table
    from resgym.game.rewards import REWARDS, Transition
    from resgym.game.rng import RowRandom, Stream
    from resgym.game.rules import move, random_starts
    from resgym.game.spec import GameSpec
    from resgym.game.state import GameState, state_from_points
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "REWARDS",
    "GameSpec",
    "GameState",
    "RowRandom",
    "Stream",
    "Transition",
    "action_axes",
    "host_action_table",
    "move",
    "random_starts",
    "state_from_points",
]
