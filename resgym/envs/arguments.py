"""Check everything that callers pass to the vector environments, saved states among them.

A saved state is plain tensors and data. Players and rewards are not part of it: they have no
memory, and belong to the code that made the environment.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import Tensor

from resgym.game.episode import legal_actions
from resgym.game.rng import RowRandom
from resgym.game.spec import MAX_COORDINATE, GameSpec, check_choice, check_integer
from resgym.game.state import (
    alive_rows,
    canonical_state,
    check_tensor,
    holds_integers,
    tensor_kind,
)
from resgym.game.stepping import EpisodeState, StepPlan
from resgym.texts import shown

MAX_SEED = 2**63 - 1


def parse_autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return the mode of an enum member, its name or its value."""
    for member in AutoresetMode:
        if mode in (member, member.name, member.value):
            return member
    names = [member.name for member in AutoresetMode]
    raise ValueError(f"autoreset_mode must be one of {names}, got {shown(mode)}")


def parse_options(options: Any) -> dict[str, Any]:
    """Return the options of a reset as a new dict with known keys only."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise TypeError(f"options must be a dict, got {shown(options)}")
    for key in options:
        check_choice("options", key, ("points", "weights", "reset_mask"))
    return dict(options)


def parse_seeds(seed: Any, num_envs: int, fresh: bool) -> list[int | None]:
    """Return one seed in 0..2^63-1 per row: s means s, s + 1, ...; a list has one per row.

    Rows without a seed get one from the system's entropy if ``fresh``, otherwise None.
    """
    if isinstance(seed, (Tensor, np.ndarray)):
        seed = seed.tolist()
    values: list[int | None] = [None] * num_envs
    if isinstance(seed, (list, tuple)):
        if len(seed) != num_envs:
            raise ValueError(f"seed must be an integer or {num_envs} of them, got {len(seed)}")
        values = [
            each if each is None else check_integer("seed", each, 0, MAX_SEED) for each in seed
        ]
    elif seed is not None:
        first = check_integer("seed", seed, 0, MAX_SEED - (num_envs - 1))
        values = list(range(first, first + num_envs))
    if fresh:
        entropy = secrets.randbits(62)
        values = [entropy + row if each is None else each for row, each in enumerate(values)]
    return values


def parse_integers(name: str, values: Any, length: int, device: torch.device) -> Tensor:
    """int64 [length] on a device, from a tensor, an array or a list of integers."""
    tensor = values
    if not isinstance(values, Tensor):
        values = np.asarray(values)
        if values.dtype.kind not in "iu":
            raise TypeError(f"{name} must be integers, got dtype {values.dtype}")
        tensor = torch.from_numpy(values.astype(np.int64))
    if tuple(tensor.shape) != (length,):
        raise ValueError(f"{name} must have shape ({length},), got {tuple(tensor.shape)}")
    if not holds_integers(tensor):
        raise TypeError(f"{name} must be integers, got dtype {tensor_kind(tensor)}")
    return tensor.to(device, torch.int64)


def parse_reset_mask(mask: Any, num_envs: int, device: torch.device, started: bool) -> Tensor:
    """Return the mask bool [N], not all False; all True at the first reset and for None."""
    if mask is None:
        return torch.ones(num_envs, dtype=torch.bool, device=device)
    tensor = torch.as_tensor(mask)
    check_tensor("reset_mask", tensor, torch.bool, (num_envs,))
    if not (tensor.any() if started else tensor.all()):
        least = "at least one" if started else "at the first reset all"
        raise ValueError(f"reset_mask must have {least} True, got {tensor.tolist()[:12]}")
    return tensor.to(device)


def start_sizes(spec: GameSpec, num_points: int | None, max_value: int | None) -> GameSpec:
    """Return the sizes of random starts of a stage, at most the game's own (also for None)."""
    points, value = spec.max_num_points, spec.max_value
    if num_points is not None:
        points = check_integer("num_points", num_points, 2, points)
    if max_value is not None:
        value = check_integer("max_value", max_value, 1, value)
    return replace(spec, max_num_points=points, max_value=value)


def refusal(plan: StepPlan, games: EpisodeState, values: Tensor) -> ValueError:
    """The error that says why a step was refused, of actions int64 [N]."""
    if plan.autoreset_mode == "DISABLED" and games.ended.any():
        if len(values) == 1:
            return ValueError("step after the end of the episode: call reset() first")
        rows = games.ended.nonzero()[:12, 0].tolist()
        return ValueError(f"rows {rows} have ended: reset them with options={{'reset_mask': ...}}")
    legal = legal_actions(plan, games)
    known = values.clamp(0, plan.num_actions - 1)
    good = (known == values) & legal.gather(1, known[:, None])[:, 0]
    row = int((~good & ~games.ended).nonzero()[0, 0])
    allowed = str(legal[row].nonzero()[:, 0].tolist())
    allowed = allowed if len(allowed) < 80 else f"{allowed[:60]} ... {plan.num_actions - 1}]"
    action = "action" if len(values) == 1 else f"action of row {row}"
    return ValueError(f"{action} must be one of {allowed}, got {int(values[row])}")


FIELDS = tuple(name for name in EpisodeState._fields if name not in ("key", "rule"))
"""The saved fields of a state; keys follow from seeds and episodes."""


def save_state(plan: StepPlan, games: EpisodeState, started: bool) -> dict[str, Any]:
    """Return all that the next steps depend on.

    Returns:
        ``game``: sizes and options of the game, and its set of starts; ``stage``: sizes of new
        games; ``fields``: copies of `FIELDS` of the state; ``started``.
    """
    drawn, starts = plan.start_spec, plan.starts
    # Equal for equal positions in the same order.
    digest = hashlib.sha256(starts.points.cpu().numpy().tobytes()).hexdigest() if starts else None
    return {
        "game": {**asdict(plan.spec), "starts": digest},
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
    fields = {}
    for name, field in own["fields"].items():
        check_tensor(name, state["fields"][name], field.dtype, field.shape)
        fields[name] = state["fields"][name].clone().to(field.device)
    key = RowRandom.for_episode(fields["seed"], fields["episode"]).key
    games = EpisodeState(key=key, rule=like.rule, **fields)
    started, stage = bool(state["started"]), start_sizes(plan.spec, **state["stage"])
    _check_rows(plan, games, started)
    return replace(plan, start_spec=stage), games, started


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
