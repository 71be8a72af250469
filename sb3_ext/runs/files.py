"""The folder of a run: one writing process, and no half-written files; digests, versions, commit.

A rename is atomic on POSIX file systems, and durable once the directory that holds the name was
synchronised too. So everything is written under another name, synchronised, and renamed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from resgym.files import parse_json, read_text, write_file
from sb3_ext.types import Data, StrPath


def sync(path: Path) -> None:
    """Waits until a file, or the list of names in a directory, has reached the disk."""
    try:
        # Windows flushes what is open for writing, and cannot open directories.
        descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    except PermissionError:
        if path.is_dir():
            return
        raise
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename_durably(source: Path, target: Path) -> None:
    """Renames within one directory; a file takes the place of another of that name at once."""
    os.replace(source, target)
    sync(target.parent)


def write_durably(path: Path, content: str | bytes) -> None:
    """Replaces the content of a file as a whole; after an OSError the old one is still there."""
    write_file(path, content)
    sync(path.parent)


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_content(file: Path, digest: str) -> None:
    """Raise ValueError if a file is missing, or has another SHA-256 than `digest`."""
    if not file.is_file():
        raise ValueError("the file is missing")
    if file_digest(file) != digest:
        raise ValueError(f"sha256: is not {digest:.12}...; the file is damaged")


def write_json(path: Path, data: Any) -> None:
    """Replaces a file of plain data as a whole."""
    write_durably(path, json.dumps(data, indent=1) + "\n")


_PACKAGES = (
    "gymnasium jax numba numpy resgym rl_zoo3 safetensors sb3-contrib sbx-rl stable-baselines3 "
    "torch triton"
)


def provenance(seed: int | None) -> Data:
    """Plain data to be saved beside results, with this process's command line."""
    return {
        "command": sys.orig_argv,
        "commit": commit(),
        "seed": seed,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that a result depends on."""
    installed = {"python": platform.python_version()}
    for package in _PACKAGES.split():
        with suppress(importlib.metadata.PackageNotFoundError):
            installed[package] = importlib.metadata.version(package)
    return installed


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


LOCK = ".lock"


class CheckpointWarning(UserWarning):
    """Something about a checkpoint that did not stop the work."""


class FolderInUseError(ValueError):
    """Another process writes to the folder."""


@contextmanager
def going_on_without(what: str, place: Path) -> Iterator[None]:
    """Training continues if ``what`` cannot be written; a `CheckpointWarning` says so."""
    try:
        yield
    except OSError as error:
        warnings.warn(f"{place}: no {what} was written: {error}", CheckpointWarning, stacklevel=4)


class RunFolder:
    """A folder that is made, and that this process alone writes to while the block runs.

    The system lets go of the lock when the process ends, however it ends, so a lock never has to be
    removed by hand; its empty file ``.lock`` stays. Blocks of one process may be nested. A block
    that fails before it has written anything leaves nothing behind.

    Args:
        path: the folder.
        name: what the path is called in messages.

    Raises:
        FolderInUseError: on entering: another process is in it.
        ValueError: on entering: the folder cannot be made or written to.
    """

    def __init__(self, path: StrPath, name: str = "out") -> None:
        self.path, self.name = Path(path), name
        # Blocks of one process share a lock, which counts them.
        self._lock = FileLock(self.path.resolve() / LOCK, is_singleton=True)
        self._made: list[Path] = []

    def __enter__(self) -> RunFolder:
        above = [self.path, *self.path.parents]
        try:
            if self.path.is_file():
                raise ValueError(f"{self.name}: must be a folder, {self.path} is a file")
            self._made = [path for path in (self.path / LOCK, *above) if not path.exists()]
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise FolderInUseError(
                f"{self.name}: {self.path} is in use by another process; wait for it, or"
                " use another folder"
            ) from None
        except OSError as error:
            self._remove_what_is_empty()
            raise ValueError(
                f"{self.name}: {self.path} cannot be written to: {error.strerror or error}"
            ) from None
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self._lock.release()
        if kind is not None:
            self._remove_what_is_empty()

    def _remove_what_is_empty(self) -> None:
        with suppress(OSError):
            for path in self._made:
                path.unlink() if path.name == LOCK else path.rmdir()

    def discard(self) -> None:
        """Removes everything from a folder that this block made."""
        if self.path in self._made:
            for path in self.path.iterdir():
                if path.name != LOCK:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    def append(self, name: str, entry: Data) -> None:
        """Appends a line of JSON."""
        file = self.path / name
        with going_on_without("line", file), file.open("a", encoding="utf-8") as opened:
            print(json.dumps(entry), file=opened)

    def keep_lines_until(self, name: str, step: int) -> None:
        """Drops the lines of later steps, and what a crash left of a last line."""
        file = self.path / name
        if not file.is_file():
            return
        kept = []
        for line in read_text(file, "lines", 2**30).splitlines():
            with suppress(LookupError, TypeError, ValueError):
                if parse_json(line)["step"] <= step:
                    kept.append(line + "\n")
        write_durably(file, "".join(kept))
