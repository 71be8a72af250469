"""What an environment remembers between two steps, as plain tensors and data, and back.

Players and rewards are not part of it: they have no memory of their own, and belong to whoever made
the environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from resgym.envs.table import Table
from resgym.game.rng import RowRandom
from resgym.game.spec import MAX_COORDINATE, GameSpec
from resgym.game.state import GameState, canonical_state

__all__ = ["check_fields", "check_rows", "load_table_state", "table_state"]


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


def load_table_state(
    table: Table, state: Mapping[str, Any], check: Callable[[GameState, Tensor], None]
) -> None:
    """Goes on with the games that `table_state` gave.

    Args:
        table: whose games are replaced.
        state: what `table_state` gave.
        check: called with the positions and the sets bool [N, D] that await an answer, before
            anything has changed; raises if they do not belong here.

    Raises:
        ValueError: they are of another game or of another number of rows, or no games. Nothing has
            changed.
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
    fields = {name: value.to(table.device) for name, value in fields.items()}
    positions = GameState(fields["points"], fields["count"])
    _check_values(fields, table.spec)
    check(positions, fields["coords"])
    table.set_starts(**starts)
    table.state = positions
    table.coords = fields["coords"]
    table.half_moves = fields["half_moves"]
    table.seed, table.episode = fields["seed"], fields["episode"]
    table._episode_rng = RowRandom.for_episode(table.seed, table.episode)


def _check_values(fields: Mapping[str, Tensor], spec: GameSpec) -> None:
    """Raises ValueError if fields of the right form hold what no game can: kernels trust them."""
    count = fields["count"]
    check_rows("count", (count >= 1) & (count <= spec.max_num_points), f"1..{spec.max_num_points}")
    check_rows("half_moves", fields["half_moves"] >= 0, "at least 0")
    check_rows("seed", fields["seed"] >= 0, "at least 0")
    check_rows("episode", fields["episode"] >= -1, "at least -1")
    points = fields["points"]
    alive = GameState(points, count).alive()[:, :, None]
    # Rows in which no episode was started have no points yet.
    waiting = (fields["episode"] == -1) & (points == -1).flatten(1).all(1) & (count == 1)
    inside = ~alive | ((points >= 0) & (points <= MAX_COORDINATE))
    check_rows("points", inside.flatten(1).all(1) | waiting, "0..2^59 in every alive row")
    columns = torch.where(alive, points.clamp(min=0), -1).permute(2, 1, 0).contiguous()
    canonical = canonical_state(columns, count, spec)
    same = (canonical.points == points).flatten(1).all(1) & (canonical.count == count)
    check_rows("points", same | waiting, "a position that a move leaves, and -1 in absent rows")
    size = fields["coords"].sum(1)
    check_rows("coords", size != 1, "no axis, or two and more")


def check_rows(name: str, good: Tensor, allowed: str) -> None:
    """Raises ValueError if not all rows of a loaded field are good.

    Args:
        name: of the field.
        good: bool [N].
        allowed: what a row must be.
    """
    if not bool(good.all()):
        row = int((~good).nonzero()[0, 0])
        raise ValueError(f"{name}: row {row} of the saved state must be {allowed}")


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
