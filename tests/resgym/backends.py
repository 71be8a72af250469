"""The implementations of the hot operations that tests run over; Triton has tests of its own."""

import importlib.util

import pytest
import torch

from resgym.kernels.dispatch import BACKENDS, resolve_backend

NAMES = tuple(name for name in BACKENDS if name not in ("auto", "triton"))
no_numba = pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs numba")
every_backend = pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=[no_numba] * (name == "numba")) for name in NAMES]
)


def get(name, spec):
    """The backend on the CPU, or a skipped test where the machine cannot have it."""
    if name == "numba":
        pytest.importorskip("numba")
    backend = resolve_backend(name, torch.device("cpu"), spec)
    assert backend.name == name
    return backend
