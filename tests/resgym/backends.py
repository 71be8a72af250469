"""The implementations of the hot operations that tests run over; Triton has tests of its own."""

import importlib.util

import pytest
import torch

from resgym.kernels.dispatch import BACKENDS, resolve_backend

NAMES = tuple(name for name in BACKENDS if name not in ("auto", "triton"))

HAS_NUMBA = importlib.util.find_spec("numba") is not None


def available():
    """The backends that this machine can run on the CPU, the reference first."""
    return [name for name in NAMES if name != "numba" or HAS_NUMBA]


needs_numba = pytest.mark.skipif(not HAS_NUMBA, reason="numba is not installed")
every_backend = pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=needs_numba if name == "numba" else ()) for name in NAMES]
)


def get(name, spec):
    """The backend on the CPU, or a skipped test where the machine cannot have it."""
    if name not in available():
        pytest.skip("numba is not installed")
    backend = resolve_backend(name, torch.device("cpu"), spec)
    assert backend.name == name
    return backend
