"""What an environment remembers between two steps, as plain tensors and data, and back.

Players and rewards are not part of it: they have no memory of their own, and belong to whoever made
the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from torch import Tensor

from resgym.envs.table import Table
from resgym.game.rng import RowRandom
from resgym.game.state import GameState

__all__ = ["check_fields", "load_table_state", "table_state"]


def table_state(table: Table) -> dict[str, Any]:
    """The games of a table.

    Returns:
        The game's sizes and options (``game``), those of the stage that new games start from
        (``starts``), and copies of the fields, [N, ...] each.
    """
    fields = {
        "coords": table.coords,
        "count": table.state.count,
        "episode": table.episode,
        "half_moves": table.half_moves,
        "points": table.state.points,
        "seed": table.seed,
    }
    return {
        "game": asdict(table.spec),
        "starts": {
            "num_points": table.start_spec.max_num_points,
            "max_value": table.start_spec.max_value,
        },
        "fields": {name: value.clone() for name, value in fields.items()},
    }


def load_table_state(table: Table, state: Mapping[str, Any]) -> None:
    """Goes on with the games that `table_state` gave.

    Raises:
        ValueError: they are of another game or of another number of rows. Nothing has changed.
    """
    for name in ("game", "starts", "fields"):
        if name not in state:
            raise ValueError(f"{name} is missing in the state of the games")
    game = asdict(table.spec)
    for name, own in game.items():
        given = state["game"].get(name)
        if given != own:
            raise ValueError(
                f"{name}: the saved games have {given!r}, this environment has {own!r}"
            )
    fields = check_fields(state["fields"], table_state(table)["fields"])
    starts = state["starts"]
    if set(starts) != {"num_points", "max_value"}:
        raise ValueError(f"starts must have num_points and max_value, got {sorted(starts)}")
    table.set_starts(**starts)
    fields = {name: value.to(table.device) for name, value in fields.items()}
    table.state = GameState(fields["points"], fields["count"])
    table.coords = fields["coords"]
    table.half_moves = fields["half_moves"]
    table.seed, table.episode = fields["seed"], fields["episode"]
    table._episode_rng = RowRandom.for_episode(table.seed, table.episode)


def check_fields(given: Mapping[str, Any], like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies of tensors that have the names, shapes and dtypes of others.

    Raises:
        ValueError: one is missing, unknown or of another form.
    """
    if given.keys() != like.keys():
        raise ValueError(f"fields must be {sorted(like)}, got {sorted(given)}")
    for name, own in like.items():
        value = given[name]
        if not isinstance(value, Tensor) or value.shape != own.shape or value.dtype != own.dtype:
            form = (
                f"{tuple(value.shape)} {value.dtype}"
                if isinstance(value, Tensor)
                else type(value).__name__
            )
            raise ValueError(f"{name}: got {form}, need {tuple(own.shape)} {own.dtype}")
    return {name: value.clone() for name, value in given.items()}
