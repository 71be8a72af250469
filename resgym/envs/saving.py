"""What an environment remembers between two steps, as plain tensors and data, and back.

Players and rewards are not part of it: they have no memory of their own, and belong to whoever made
the environment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from resgym.envs.arguments import start_sizes
from resgym.game.rng import RowRandom
from resgym.game.spec import MAX_COORDINATE
from resgym.game.state import GameState, canonical_state
from resgym.game.stepping import EpisodeState, StepPlan

FIELDS = tuple(name for name in EpisodeState._fields if name not in ("key", "rule"))
"""What is saved of a state: keys follow from seeds and episodes."""


def save_state(plan: StepPlan, games: EpisodeState, started: bool) -> dict[str, Any]:
    """All that the next steps depend on.

    Returns:
        ``game``: the game's sizes and options; ``starts``: those of the stage that new games start
        from; ``fields``: copies of `FIELDS` of the state; ``started``.
    """
    starts: dict[str, Any]
    starts = {"num_points": plan.start_spec.max_num_points, "max_value": plan.start_spec.max_value}
    if plan.starts is not None:
        starts["given"] = _digest(plan.starts)
    return {
        "game": asdict(plan.spec),
        "starts": starts,
        "fields": {name: getattr(games, name).clone() for name in FIELDS},
        "started": started,
    }


def load_state(
    plan: StepPlan, like: EpisodeState, state: Mapping[str, Any]
) -> tuple[StepPlan, EpisodeState, bool]:
    """The plan with the stage of the saved games, the games, and whether they were started.

    ``state`` is what `save_state` gave; shapes and devices shall be those of the games ``like``.

    Raises:
        ValueError, TypeError: the state is of another game or form, or holds values that no game of
            this plan can have.
    """
    own = save_state(plan, like, False)
    if state.keys() != own.keys():
        raise ValueError(f"state must have {', '.join(own)}, got {sorted(state)}")
    started, starts = state["started"], dict(state["starts"])
    if not isinstance(started, bool):
        raise TypeError(f"started must be True or False, got {started!r}")
    for name, value in own["game"].items():
        given = state["game"].get(name)
        if given != value:
            raise ValueError(
                f"{name}: the saved games have {given!r}, this environment has {value!r}"
            )
    if starts.pop("given", None) != own["starts"].pop("given", None):
        raise ValueError("starts: the saved games start from others than this environment's")
    if starts.keys() != own["starts"].keys():
        raise ValueError(f"starts must have {', '.join(own['starts'])}, got {sorted(starts)}")
    fields = _checked_fields(state["fields"], own["fields"])
    key = RowRandom.for_episode(fields["seed"], fields["episode"]).key
    games = EpisodeState(key=key, rule=like.rule, **fields)
    _check_values(plan, games)
    if started:
        _check_started(plan, games)
    return replace(plan, start_spec=start_sizes(plan.spec, **starts)), games, started


def _digest(starts: GameState) -> str:
    """Equal for equal positions in the same order."""
    return hashlib.sha256(starts.points.cpu().numpy().tobytes()).hexdigest()


def _check_values(plan: StepPlan, games: EpisodeState) -> None:
    """Raises ValueError if fields of the right form hold what no game can: kernels trust them."""
    spec, count, points = plan.spec, games.counts, games.points[:, : plan.spec.max_num_points]
    rows = f"1..{spec.max_num_points}"
    _check_rows("counts", (count >= 1) & (count <= spec.max_num_points), rows)
    for name, least in (("lengths", 0), ("half_moves", 0), ("seed", 0), ("episode", -1)):
        _check_rows(name, getattr(games, name) >= least, f"at least {least}")
    alive = games.position.alive()[:, : points.shape[1], None]
    # Rows in which no episode was started have no points yet.
    waiting = (games.episode == -1) & (points == -1).flatten(1).all(1) & (count == 1)
    inside = ~alive | ((points >= 0) & (points <= MAX_COORDINATE))
    _check_rows("points", inside.flatten(1).all(1) | waiting, "0..2^59 in every alive row")
    columns = torch.where(alive, points.clamp(min=0), -1).permute(2, 1, 0).contiguous()
    canonical = canonical_state(columns, count, spec)
    same = (canonical.points == points).flatten(1).all(1) & (canonical.count == count)
    _check_rows("points", same | waiting, "a position that a move leaves, and -1 in absent rows")
    if spec.least_axes > 1:
        _check_rows("coords", games.coords.sum(1) != 1, "no axis, or two and more")


def _check_started(plan: StepPlan, games: EpisodeState) -> None:
    """Raises ValueError if games do not fit the seat or the mode."""
    named, finished = games.coords.any(1), games.position.finished()
    # The host sees no sets, the agent one in every position that goes on.
    fits = {"host": ~named, "agent": named != finished, "both": ~(named & finished)}[plan.seat]
    _check_rows("coords", fits, "a set if, and only if, an answer is awaited here")
    if plan.autoreset_mode == "SAME_STEP":
        _check_rows("ended", ~games.ended, "False in SAME_STEP mode")
    _check_rows("ended", games.ended | ~finished, "True where the game is over")


def _check_rows(name: str, good: Tensor, allowed: str) -> None:
    """Raises ValueError if not all rows (bool [N]) of a loaded field are good."""
    if not bool(good.all()):
        row = int((~good).nonzero()[0, 0])
        raise ValueError(f"{name}: row {row} of the saved state must be {allowed}")


def _checked_fields(given: Mapping[str, Any], like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies of tensors that have the names, shapes and dtypes of others, on their device."""
    if given.keys() != like.keys():
        raise ValueError(f"fields must be {sorted(like)}, got {sorted(given)}")
    for name, own in like.items():
        value = given[name]
        if not isinstance(value, Tensor) or value.shape != own.shape or value.dtype != own.dtype:
            form = type(value).__name__
            if isinstance(value, Tensor):
                form = f"{tuple(value.shape)} {value.dtype}"
            raise ValueError(f"{name}: got {form}, need {tuple(own.shape)} {own.dtype}")
    return {name: given[name].clone().to(own.device) for name, own in like.items()}
