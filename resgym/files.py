"""Output files: checked before the work starts, and written as a whole."""

from __future__ import annotations

import os
import uuid
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path


def output_file(path: str | os.PathLike[str], endings: Collection[str], name: str = "path") -> Path:
    """Return the path of a file that can be written, or fail before a long computation starts.

    Errors call the path ``name``. ``endings`` are suffixes such as ``.svg``.

    Raises:
        ValueError: the ending is not allowed, the folder is missing or not writable, or the path
            is a folder.
    """
    target = Path(path)
    if target.suffix.lower() not in endings:
        raise ValueError(f"{name} must end in one of {', '.join(endings)}, got {target.name!r}")
    if not target.parent.is_dir():
        raise ValueError(f"{name} must be in a folder that exists, got {os.fspath(path)!r}")
    if target.is_dir():
        raise ValueError(f"{name} must be a file, got the folder {os.fspath(path)!r}")
    if not os.access(target.parent, os.W_OK):
        raise ValueError(f"{name} must be in a folder that is writable, got {os.fspath(path)!r}")
    return target


def remove_unfinished(folder: Path) -> None:
    """Remove what killed processes left of `write_file`; no other process may be writing there."""
    for left in folder.rglob(f"*.{'[0-9a-f]' * 16}.tmp"):
        left.unlink()


def write_file(path: Path, content: str | bytes) -> None:
    """Replace a file atomically: at any time it holds the old or the new content.

    Raises:
        OSError: the file could not be written; the old content is still there.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    aside = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}.tmp")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException as error:
        with suppress(OSError):
            aside.unlink()
        if isinstance(error, OSError):
            error.filename = os.fspath(path)  # not the one aside
        raise
