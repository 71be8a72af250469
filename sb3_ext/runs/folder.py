"""The folder of a run: one writing process, and no half-written files."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import yaml
from filelock import FileLock, Timeout

from sb3_ext.runs.checkpoint import CheckpointWarning
from sb3_ext.runs.files import write_json, write_text_durably

LOCK = ".lock"
# Blocks of one process share a lock, which counts them.
_locks: WeakValueDictionary[Path, FileLock] = WeakValueDictionary()


class FolderError(ValueError):
    """A folder that a run cannot be written to."""


class FolderInUseError(FolderError):
    """Another process writes to the folder."""


@contextmanager
def going_on_without(what: str, place: Path) -> Iterator[None]:
    """Training continues if ``what`` cannot be written; a `CheckpointWarning` says so."""
    try:
        yield
    except OSError as error:
        message = f"{place}: no {what} was written: {error}"
        warnings.warn(message, CheckpointWarning, stacklevel=4)


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
        FolderError: on entering: the folder cannot be made or written to.
    """

    def __init__(self, path: str | os.PathLike[str], name: str = "out") -> None:
        self.path, self.name = Path(path), name
        lock = self.path.resolve() / LOCK
        self._lock = _locks.setdefault(lock, FileLock(lock))
        self._made: list[Path] = []

    def __enter__(self) -> RunFolder:
        if self.path.is_file():
            raise FolderError(f"{self.name}: must be a folder, {self.path} is a file")
        above = [self.path, *self.path.parents]
        try:
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
            reason = error.strerror or error
            message = f"{self.name}: {self.path} cannot be written to: {reason}"
            raise FolderError(message) from None
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

    def write_json(self, name: str, data: Any) -> None:
        """Replaces a file as a whole."""
        write_json(self.path / name, data)

    def write_yaml(self, name: str, data: Any) -> None:
        """The same in YAML."""
        write_text_durably(self.path / name, yaml.safe_dump(data, sort_keys=False))

    def append(self, name: str, entry: Mapping[str, Any]) -> None:
        """Appends a line of JSON."""
        file = self.path / name
        with going_on_without("line", file), file.open("a", encoding="utf-8") as opened:
            opened.write(json.dumps(entry) + "\n")

    def keep_lines_until(self, name: str, step: int) -> None:
        """Drops the lines of later steps, and what a crash left of a last line."""
        file = self.path / name
        if not file.is_file():
            return
        kept = []
        for line in file.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):
                if json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
        write_text_durably(file, "".join(kept))
