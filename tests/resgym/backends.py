"""The implementations of the hot operations that tests run over; Triton has tests of its own."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from resgym.game.spec import GameSpec
from resgym.kernels import BACKENDS, Backend, resolve_backend

NAMES = tuple(name for name in BACKENDS if name not in ("auto", "triton"))

# What a backend needs to be tried on the CPU; a backend that is not listed must always work.
_NEEDS = {"numba": "numba"}


def available() -> list[str]:
    """The backends that this machine can run on the CPU, the reference first."""
    return [name for name in NAMES if _missing(name) is None]


def _missing(name: str) -> str | None:
    if name in _NEEDS and importlib.util.find_spec(_NEEDS[name]) is None:
        return f"{_NEEDS[name]} is not installed"
    return None


def _parameter(name: str) -> object:
    reason = _missing(name)
    return pytest.param(name, marks=[] if reason is None else pytest.mark.skip(reason))


every_backend = pytest.mark.parametrize("backend", [_parameter(name) for name in NAMES])


def get(name: str, spec: GameSpec) -> Backend:
    """The backend on the CPU, or a skipped test where the machine cannot have it."""
    reason = _missing(name)
    if reason is not None:
        pytest.skip(reason)
    backend = resolve_backend(name, torch.device("cpu"), spec)
    assert backend.name == name
    return backend
