"""Where results come from: command line, versions of the packages, commit."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_PACKAGES = (
    *("gymnasium", "jax", "numba", "numpy", "resgym", "rl_zoo3", "safetensors", "sb3-contrib"),
    *("sbx-rl", "stable-baselines3", "torch", "triton"),
)


def provenance(seed: int | None, command: Sequence[str] = ()) -> dict[str, Any]:
    """Plain data to be saved beside results; by default with this process's command line."""
    return {
        "command": list(command) or sys.argv,
        "commit": commit(),
        "seed": seed,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Versions of what a result depends on; packages that are not installed are left out."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def commit() -> str | None:
    """The commit of this checkout, with ``-dirty`` if files were changed; None outside of one."""
    try:
        result = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip() or None
