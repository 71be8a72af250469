"""Chooses the implementation of the hot operations by name and device.

Every backend offers the same three pure functions; ``torch`` is the reference and the others are
tested bit-equal to it. ``numba`` (``pip install 'resgym[fast]'``) compiles them for the CPU.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from resgym.game.observation import observe_points
from resgym.game.positions import random_starts
from resgym.game.rng import RowRandom
from resgym.game.rules import move
from resgym.game.spec import GameSpec
from resgym.game.state import GameState
from resgym.kernels.step import Fields, Played, Started, StepPlan

__all__ = ["BACKENDS", "Backend", "host_actions", "resolve_backend"]

BACKENDS = ("auto", "torch", "numba")


@dataclass(frozen=True)
class Backend:
    """The hot operations of the game.

    Attributes:
        name: what `resolve_backend` was asked for, never ``auto``.
        move: as `resgym.game.rules.move`.
        random_starts: as `resgym.game.positions.random_starts`.
        observe_points: as `resgym.game.observation.observe_points`.
        play_step: a whole step of an environment (`resgym.kernels.step`), if there is one.
        play_start: the start of episodes, likewise.
    """

    name: str
    move: Callable[[GameState, Tensor, Tensor, GameSpec], tuple[GameState, Tensor]]
    random_starts: Callable[[GameSpec, RowRandom], GameState]
    observe_points: Callable[[GameState, bool], Tensor]
    play_step: Callable[[StepPlan, Fields, Tensor, Any], Played | None] | None = None
    play_start: Callable[[StepPlan, Fields, Tensor], Started | None] | None = None


_TORCH = Backend("torch", move, random_starts, observe_points)


@cache
def _numba() -> Backend | str:
    """The compiled backend, or why there is none."""
    try:
        from resgym.kernels import numba_backend, numba_step
    except ModuleNotFoundError as error:
        return str(error)
    except Exception as error:  # numba is there but refuses to work, say with this NumPy
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        warnings.warn(
            f"backend 'numba' cannot be used, 'auto' is 'torch' ({reason})",
            RuntimeWarning,
            stacklevel=3,
        )
        return reason
    return Backend(
        "numba",
        numba_backend.move,
        numba_backend.random_starts,
        numba_backend.observe_points,
        numba_step.play_step,
        numba_step.play_start,
    )


def resolve_backend(name: str, device: torch.device, spec: GameSpec) -> Backend:
    """The backend of a name.

    Args:
        name: ``auto`` takes the fastest that works for the device and the game.
        device: where the states live.
        spec: the game.

    Raises:
        ValueError: unknown name, or a named backend that is not installed or does not fit the
            device or the game.
    """
    if name not in BACKENDS:
        raise ValueError(f"backend must be one of {list(BACKENDS)}, got {name!r}")
    if name == "torch" or (name == "auto" and device.type != "cpu"):
        return _TORCH
    if device.type != "cpu":
        raise ValueError(f"backend 'numba' runs on the cpu, got device {str(device)!r}")
    numba = _numba()
    if isinstance(numba, Backend):
        return numba
    if name == "auto":
        return _TORCH
    raise ValueError(f"backend 'numba' needs numba (pip install 'resgym[fast]'): {numba}")


def host_actions(name: str | None, state: GameState, rng: RowRandom) -> Tensor | None:
    """What a scripted host chooses, if the fastest backend for the device has compiled it.

    Args:
        name: its `resgym.players.compiled_name`.
        state: positions of N games.
        rng: the rows' random numbers.

    Returns:
        int64 [N], equal to the host's ``act``, or None.
    """
    if name is None or state.device.type != "cpu" or not isinstance(_numba(), Backend):
        return None
    from resgym.kernels import numba_backend

    return numba_backend.host_actions(name, state, rng)
