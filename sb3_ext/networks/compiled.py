"""Loops compiled with numba, where it is installed and the numbers suit them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor


@cache
def compiled_module(name: str) -> Any:
    """A module of compiled functions by its dotted name, or None without numba."""
    try:
        return import_module(name)
    except (ImportError, OSError):  # not installed, or a part of it that cannot be loaded
        return None


def are_plain(*given: Tensor | None) -> bool:
    """Whether all given are contiguous float32 numbers on a CPU, and no compiler traces them."""
    return not torch.compiler.is_compiling() and all(
        x is None or (x.dtype is torch.float32 and x.is_cpu and x.is_contiguous()) for x in given
    )
