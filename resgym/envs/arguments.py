"""Check everything that callers pass to the vector environments."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import Tensor

from resgym.game.episode import legal_actions
from resgym.game.spec import GameSpec, check_integer
from resgym.game.state import holds_integers, tensor_kind
from resgym.game.stepping import EpisodeState, StepPlan

MAX_SEED = 2**63 - 1


def parse_autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return the mode of an enum member, its name or its value."""
    for member in AutoresetMode:
        named = isinstance(mode, str) and mode.lower()
        if mode is member or named in (member.name.lower(), member.value.lower()):
            return member
    names = [member.name for member in AutoresetMode]
    raise ValueError(f"autoreset_mode must be one of {names}, got {mode!r}")


def parse_options(options: Any) -> dict[str, Any]:
    """Return the options of a reset as a new dict with known keys only."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise TypeError(f"options must be a dict, got {options!r}")
    unknown = [key for key in options if key not in ("points", "weights", "reset_mask")]
    if unknown:
        raise ValueError(f"options must be 'points', 'weights' or 'reset_mask', got {unknown}")
    return dict(options)


def parse_seeds(seed: Any, num_envs: int, fresh: bool) -> list[int | None]:
    """Return one seed in 0..2^63-1 per row: s means s, s + 1, ...; a list has one per row.

    Rows without a seed get one from the system's entropy if ``fresh``, otherwise None.
    """
    if isinstance(seed, (Tensor, np.ndarray)):
        seed = seed.tolist()
    values: list[int | None]
    if seed is None:
        values = [None] * num_envs
    elif isinstance(seed, Sequence) and not isinstance(seed, (str, bytes)):
        if len(seed) != num_envs:
            raise ValueError(f"seed must be an integer or {num_envs} of them, got {len(seed)}")
        values = [
            None if each is None else check_integer(f"seed[{row}]", each, 0, MAX_SEED)
            for row, each in enumerate(seed)
        ]
    else:
        first = check_integer("seed", seed, 0, MAX_SEED - (num_envs - 1))
        values = list(range(first, first + num_envs))
    if fresh and None in values:
        entropy = secrets.randbits(62)
        values = [entropy + row if each is None else each for row, each in enumerate(values)]
    return values


def parse_integers(name: str, values: Any, length: int, device: torch.device) -> Tensor:
    """Return int64 [length] on a device, from a tensor, an array or a list of integers."""
    if not isinstance(values, Tensor):
        try:
            values = np.asarray(values)
        except ValueError as error:
            raise ValueError(f"{name} must have shape ({length},), got a ragged list") from error
    tensor = isinstance(values, Tensor)
    # A nested tensor has no shape to ask for.
    if not (tensor and values.is_nested) and tuple(values.shape) != (length,):
        raise ValueError(f"{name} must have shape ({length},), got {tuple(values.shape)}")
    if not (holds_integers(values) if tensor else values.dtype.kind in "iu"):
        kind = tensor_kind(values) if tensor else values.dtype
        raise TypeError(f"{name} must be integers, got dtype {kind}")
    if tensor and values.is_meta and device.type != "meta":
        raise ValueError(f"{name} must hold data, got a tensor on the meta device")
    if isinstance(values, np.ndarray):
        values = torch.from_numpy(values.astype(np.int64))
    return values.to(device, torch.int64)


def parse_reset_mask(mask: Any, num_envs: int, device: torch.device, started: bool) -> Tensor:
    """Return the mask bool [N], not all False; all True at the first reset and for None."""
    if mask is None:
        return torch.ones(num_envs, dtype=torch.bool, device=device)
    try:
        tensor = mask if isinstance(mask, Tensor) else torch.as_tensor(np.asarray(mask))
    except (TypeError, ValueError) as error:
        raise ValueError(f"reset_mask must be bool of shape ({num_envs},), got {mask!r}") from error
    if tuple(tensor.shape) != (num_envs,) or tensor.dtype != torch.bool:
        raise ValueError(
            f"reset_mask must be bool of shape ({num_envs},), "
            f"got {tensor.dtype} of shape {tuple(tensor.shape)}"
        )
    if not bool(tensor.any()):
        raise ValueError("reset_mask must have at least one True, got none")
    if not started and not bool(tensor.all()):
        raise ValueError("reset_mask must be all True at the first reset")
    return tensor.to(device)


def start_sizes(spec: GameSpec, num_points: int | None, max_value: int | None) -> GameSpec:
    """Return the sizes of random starts of a stage, at most the game's own (also for None)."""
    points, value = spec.max_num_points, spec.max_value
    if num_points is not None:
        points = check_integer("num_points", num_points, 2, points)
    if max_value is not None:
        value = check_integer("max_value", max_value, 1, value)
    return replace(spec, max_num_points=points, max_value=value)


def refusal(plan: StepPlan, games: EpisodeState, values: Tensor, actions: Any) -> ValueError:
    """Return the error that explains why a step was refused; actions int64 [N] and as given."""
    if plan.autoreset_mode == "DISABLED" and bool(games.ended.any()):
        if len(values) == 1:
            return ValueError("the episode has ended: call reset()")
        rows = _shortened(games.ended.nonzero()[:, 0].tolist())
        return ValueError(f"rows {rows} have ended: reset them with options={{'reset_mask': ...}}")
    legal = legal_actions(plan, games)
    known = values.clamp(0, plan.num_actions - 1)
    good = (known == values) & legal.gather(1, known[:, None])[:, 0]
    row = int((~good & ~games.ended).nonzero()[0, 0])
    allowed = _shortened(legal[row].nonzero()[:, 0].tolist())
    # As an array: torch refuses to read large unsigned numbers.
    given = np.asarray(actions.cpu() if isinstance(actions, Tensor) else actions)[row]
    return ValueError(f"action of row {row} must be one of {allowed}, got {given}")


def _shortened(values: list[int]) -> str:
    if len(values) > 12 and values == list(range(values[0], values[-1] + 1)):
        return f"{values[0]}..{values[-1]}"
    return str(values)


def add_masks(info: dict[str, Any], every: np.ndarray) -> None:
    """Add a mask ``_key``, a copy of ``every``, for each key, as in Gymnasium's own environments.

    Tensors get none: for them ``every`` is empty.
    """
    if len(every):
        for key in (*info,):
            if key[0] != "_":
                info.setdefault("_" + key, every.copy())
