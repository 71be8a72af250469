"""Files written so that a crash leaves the old or the new content; digests, versions, commit.

A rename is atomic on POSIX file systems, and durable once the directory that holds the name was
synchronised too. So everything is written under another name, synchronised, and renamed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np


def sync(path: Path) -> None:
    """Waits until a file, or the list of names in a directory, has reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename_durably(source: Path, target: Path) -> None:
    """Renames within one directory; a file takes the place of another of that name at once."""
    os.replace(source, target)
    sync(target.parent)


def write_text_durably(path: Path, text: str) -> None:
    """Replaces the content of a file as a whole; after an OSError the old one is still there."""
    aside = path.with_name(path.name + ".tmp")
    try:
        aside.write_text(text, encoding="utf-8")
        sync(aside)
        rename_durably(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_content(file: Path, digest: str) -> None:
    """A ValueError if a file is missing or has another digest."""
    if not file.is_file():
        raise ValueError("the file is missing")
    if file_digest(file) != digest:
        raise ValueError(f"sha256: is not {digest:.12}...; the file is damaged")


def digest_of(*values: Any) -> str:
    """SHA-256 of arrays (content, type and shape) and plain data."""
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype.str}{value.shape}".encode())
            digest.update(np.ascontiguousarray(value).tobytes())
        else:
            digest.update(json.dumps(value, sort_keys=True).encode())
    return digest.hexdigest()


def write_json(path: Path, data: Any) -> None:
    """Replaces a file of plain data as a whole."""
    write_text_durably(path, json.dumps(data, indent=1) + "\n")


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
