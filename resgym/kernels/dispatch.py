"""Chooses the implementation of a step by name and device: see ``docs/layers.md``."""

from __future__ import annotations

import warnings
from functools import cache, partialmethod
from time import perf_counter
from typing import Any

import torch

from resgym.game.episode import Backend
from resgym.game.spec import GameSpec, check_choice
from resgym.kernels.check import Checked
from resgym.trust import packaged

_CLASSES = {
    "torch": "resgym.game.episode:Backend",
    "numba": "resgym.kernels.cpu.backend:NumbaBackend",
    "triton": "resgym.kernels.cuda.backend:TritonBackend",
}

BACKENDS = ("auto", *_CLASSES)


@cache
def _found(name: str) -> Any:
    """Return a backend, or the reason why there is none."""
    try:
        return packaged(_CLASSES[name])()
    except Exception as error:  # not there, or it refuses to work, say with this NumPy
        return f"{type(error).__name__}: {error}".splitlines()[0]


PATIENCE = 3.0
"""Seconds that a process spends in the reference before it compiles, which takes about twice."""


class Patient(Backend):
    """The compiled backend if its machine code is on disk, otherwise the reference.

    After `PATIENCE` seconds in the reference it compiles; the results are the same bit for bit. So
    short programs never wait for a compiler.
    """

    name = "numba"

    def __init__(self, compiled: Any, ready: set[str]) -> None:
        self._compiled, self._left = compiled, PATIENCE
        self._ready = ready

    def _play(self, operation: str, *given: Any) -> Any:
        if self._left <= 0 or operation in self._ready:
            return getattr(self._compiled, operation)(*given)
        begin = perf_counter()
        result = getattr(_found("torch"), operation)(*given)
        self._left -= perf_counter() - begin
        return result

    step: Any = partialmethod(_play, "step")
    start: Any = partialmethod(_play, "start")
    move: Any = partialmethod(_play, "move")


@cache
def _automatic(name: str) -> Any:
    """Return a backend that is there, as `auto` takes it."""
    found = _found(name)
    if name == "triton":
        return Checked(found)
    if name == "numba" and (ready := found.operations_on_disk()) != {*found.compiled}:
        return Patient(found, ready)
    return found


@cache
def _warn(message: str) -> None:
    """Warn once per process about each reason why 'auto' is not the fastest backend."""
    warnings.warn(message, RuntimeWarning, stacklevel=4)


def resolve_backend(name: str, device: torch.device, spec: GameSpec) -> Backend:
    """The backend of a name.

    ``auto`` takes the fastest backend for the device and the game, and warns once if that is the
    reference for lack of a package. On the CPU it is `Patient`, on a GPU `Checked`.

    Raises:
        ValueError: unknown name, or a named backend that is not installed or does not fit the
            device or the game.
    """
    check_choice("backend", name, BACKENDS)
    fastest = {"cpu": "numba", "cuda": "triton"}.get(device.type, "torch")
    wanted = fastest if name == "auto" else name
    problem = _problem(wanted, device, spec)
    if problem is not None:
        if name != "auto":
            raise ValueError(f"backend {name!r} {problem}")
        _warn(f"backend 'auto' is 'torch': {wanted!r} {problem}")
        wanted = "torch"
    backend: Backend = (_automatic if name == "auto" else _found)(wanted)
    return backend


def _problem(name: str, device: torch.device, spec: GameSpec) -> str | None:
    """Why a backend cannot play a game on a device, or None."""
    if name == "torch":
        return None
    if name == "numba" and device.type != "cpu":
        return f"runs on the cpu, got device {str(device)!r}"
    found = _found(name)
    if isinstance(found, str):
        needed, extra = ("numba", "fast") if name == "numba" else ("Triton", "gpu")
        return f"needs {needed} (pip install 'resgym[{extra}]'): {found}"
    if name == "numba":
        return None
    from resgym.kernels.cuda.backend import INTERPRETED, MAX_NUM_POINTS

    if device.type != "cuda" and not (device.type == "cpu" and INTERPRETED):
        return f"runs on cuda, got device {str(device)!r}"
    if spec.rule != "basic":
        return f"plays rule 'basic', got {spec.rule!r}"
    if spec.max_num_points > MAX_NUM_POINTS:
        return f"plays max_num_points up to {MAX_NUM_POINTS}, got {spec.max_num_points}"
    return None
