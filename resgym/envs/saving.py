"""The state of an environment between two steps, as plain tensors and data, and back.

Players and rewards are not part of it: they have no memory, and belong to the code that made the
environment.
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
from resgym.game.variants import alive_rows

FIELDS = tuple(name for name in EpisodeState._fields if name not in ("key", "rule"))
"""The saved fields of a state; keys follow from seeds and episodes."""


def save_state(plan: StepPlan, games: EpisodeState, started: bool) -> dict[str, Any]:
    """Return all that the next steps depend on.

    Returns:
        ``game``: sizes and options of the game, and its set of starts; ``stage``: sizes of new
        games; ``fields``: copies of `FIELDS` of the state; ``started``.
    """
    drawn = plan.start_spec
    return {
        "game": {**asdict(plan.spec), "starts": _digest(plan.starts)},
        "stage": {"num_points": drawn.max_num_points, "max_value": drawn.max_value},
        "fields": {name: getattr(games, name).clone() for name in FIELDS},
        "started": started,
    }


def load_state(
    plan: StepPlan, like: EpisodeState, state: Mapping[str, Any]
) -> tuple[StepPlan, EpisodeState, bool]:
    """Return the plan with the stage of the saved games, the games, and whether they started.

    ``state`` is a result of `save_state`; shapes and devices must be those of the games ``like``.

    Raises:
        ValueError, TypeError: the state belongs to another game or form, or holds values that no
            game of this plan can have.
    """
    own = save_state(plan, like, False)
    if state.keys() != own.keys() or state["fields"].keys() != own["fields"].keys():
        raise ValueError(f"state must have {', '.join(own)} of such games, got {sorted(state)}")
    if state["game"] != own["game"]:
        raise ValueError(
            f"game: the saved games have {state['game']}, this environment has {own['game']}"
        )
    fields = {name: _copy(name, state["fields"][name], own["fields"][name]) for name in FIELDS}
    key = RowRandom.for_episode(fields["seed"], fields["episode"]).key
    games = EpisodeState(key=key, rule=like.rule, **fields)
    _check_rows(plan, games, bool(state["started"]))
    stage = start_sizes(plan.spec, **state["stage"])
    return replace(plan, start_spec=stage), games, bool(state["started"])


def _digest(starts: GameState | None) -> str | None:
    """Return a digest, equal for equal positions in the same order."""
    if starts is None:
        return None
    return hashlib.sha256(starts.points.cpu().numpy().tobytes()).hexdigest()


def _copy(name: str, value: Any, own: Tensor) -> Tensor:
    """A copy of a saved tensor, which must have the shape and dtype of another, on its device."""
    form, needed = ((getattr(t, "shape", None), getattr(t, "dtype", None)) for t in (value, own))
    if form != needed:
        raise ValueError(f"{name}: got {form}, need {needed}")
    return value.clone().to(own.device)


def _check_rows(plan: StepPlan, games: EpisodeState, started: bool) -> None:
    """Raise ValueError if a field holds values that no game can have: kernels trust them."""
    spec, most = plan.spec, plan.spec.max_num_points
    count, points = games.counts.clamp(1, most), games.points[:, :most]
    alive = alive_rows(points, count)[..., None]
    columns = torch.where(alive, points.clamp(0, MAX_COORDINATE), -1).permute(2, 1, 0)
    canonical = canonical_state(columns.contiguous(), count, spec)
    possible = (canonical.points == points).flatten(1).all(1) & (canonical.count == games.counts)
    # Rows in which no episode was started have no points yet.
    fresh = (games.episode == -1) & (points == -1).flatten(1).all(1) & (games.counts == 1)
    sound = (possible | fresh) & (games.episode >= -1)
    sound &= (games.lengths >= 0) & (games.half_moves >= 0) & (games.seed >= 0)
    if spec.least_axes > 1:
        sound &= games.coords.sum(1) != 1
    if started:
        named, finished = games.coords.any(1), games.position.finished()
        # The host sees no sets, the agent one in every position that continues.
        sound &= {"host": ~named, "agent": named != finished, "both": ~(named & finished)}[
            plan.seat
        ]
        sound &= (games.ended | ~finished) & (~games.ended | (plan.autoreset_mode != "SAME_STEP"))
    if not sound.all():
        row = int((~sound).nonzero()[0, 0])
        raise ValueError(f"fields: row {row} of the saved state holds what no game can")
