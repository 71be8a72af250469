"""Files: read within bounds; checked before the work starts, and written as a whole."""

from __future__ import annotations

import json
import os
import stat
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from resgym.texts import shown

StrPath = str | os.PathLike[str]
"""The path of a file or folder."""

MAX_BYTES = 2**26
"""Largest number of bytes of a file that is read as a whole."""

MAX_DEPTH = 100
"""Lists and mappings of JSON inside each other."""


@contextmanager
def opened(path: StrPath, field: str, most: int) -> Iterator[TextIO]:
    """Open a regular file of at most ``most`` bytes; a pipe or a device may never end.

    Raises:
        ValueError: there is no such file, it is of another kind, too large, not readable, or the
            block finds that it is not UTF-8; one line that begins with ``field``.
    """
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode):
            reason = "expected a regular file"
        elif about.st_size > most:
            reason = f"expected at most {most} bytes, got {about.st_size}"
        else:
            with open(path, encoding="utf-8-sig") as file:
                yield file
            return
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError:
        reason = "not UTF-8 text"
    raise ValueError(f"{field}: cannot be read: {reason}: {shown(os.fspath(path))}")


def read_text(path: StrPath, field: str, most: int = MAX_BYTES) -> str:
    """Return the text of a file; errors as `opened`."""
    with opened(path, field, most) as file:
        return file.read(most)


def parse_json(text: str) -> Any:
    """Return the data of a text; a ValueError if it is not JSON, or too deep."""
    with suppress(RecursionError):
        data = json.loads(text)
        if _depth(data) <= MAX_DEPTH:
            return data
    raise ValueError(f"more than {MAX_DEPTH} lists and mappings inside each other")


def _depth(data: Any) -> int:
    """Return how many lists and mappings are inside each other."""
    if isinstance(data, dict):
        data = data.values()
    elif not isinstance(data, list):
        return 0
    return 1 + max(map(_depth, data), default=0)


def read_json(path: StrPath, field: str) -> Any:
    """Return the data of a file of JSON; errors as `opened` and `parse_json`."""
    text = read_text(path, field)
    try:
        return parse_json(text)
    except ValueError as error:
        raise ValueError(f"{field}: {shown(os.fspath(path))}: {error}") from None


def output_file(path: StrPath, endings: Collection[str], name: str = "path") -> Path:
    """Return the path of a file that can be written, or fail before a long computation starts.

    Errors call the path ``name``. ``endings`` are suffixes such as ``.svg``.

    Raises:
        ValueError: the ending is not allowed, the folder is missing or not writable, or the path
            is a folder.
        OSError: no file can have this path.
    """
    target = Path(path)
    given = shown(os.fspath(path))
    if target.suffix.lower() not in endings:
        raise ValueError(
            f"{name} must end in one of {', '.join(endings)}, got {shown(target.name)}"
        )
    if not target.parent.is_dir():
        raise ValueError(f"{name} must be in a folder that exists, got {given}")
    if target.is_dir():
        raise ValueError(f"{name} must be a file, got the folder {given}")
    with suppress(FileNotFoundError):
        target.stat()  # fails on a name that is too long, as `is_dir` did before Python 3.14
    if not os.access(target.parent, os.W_OK):
        raise ValueError(f"{name} must be in a folder that is writable, got {given}")
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
