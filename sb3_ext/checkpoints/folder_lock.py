"""One process at a time in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows, where nothing is locked
    fcntl = None  # type: ignore[assignment]

__all__ = ["FolderInUseError", "sole_writer"]

LOCK = ".lock"


class FolderInUseError(ValueError):
    """Another process writes to the folder."""


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Keeps other processes that ask out of a folder as long as the block runs.

    The system lets go of it when the process ends, however it ends, so a lock never has to be
    removed by hand; its empty file ``.lock`` stays.

    Args:
        folder: exists.

    Raises:
        FolderInUseError: another process is in it.
        OSError: the folder cannot be written to.
    """
    if fcntl is None:
        yield
        return
    with (folder / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUseError(
                f"out: {folder} is being written to by another process; wait for it, or take "
                "another folder"
            ) from None
        yield
