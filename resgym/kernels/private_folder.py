"""Where compiled code is kept: folders and files that only the user has written."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def check_private(path: str | os.PathLike[str]) -> None:
    """Checks that nobody but this user has had a hand in a file or folder.

    Raises:
        PermissionError: it is a link, belongs to somebody else, or others may write it.
        FileNotFoundError: it is not there.
    """
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        raise PermissionError(f"{path} is a symbolic link")
    if not hasattr(os, "getuid"):  # Windows, whose user folders are private as they are
        return
    if found.st_uid != os.getuid():
        raise PermissionError(f"{path} belongs to another user")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{path} can be written by others: chmod go-w, or remove it")


def private_folder(name: str, root: str | os.PathLike[str] | None = None) -> Path:
    """A folder for compiled code, made with mode 0700 if it is not there.

    It lies in ``root``, by default in ``resgym`` in ``XDG_CACHE_HOME`` or ``~/.cache``.

    Raises:
        OSError: it cannot be made or written, or it is not private (see `check_private`).
    """
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():
        caches = Path.home() / ".cache"
    parent = Path(root) if root else caches / "resgym"
    folder = parent / name
    parent.parent.mkdir(parents=True, exist_ok=True)
    for each in (parent, folder):
        each.mkdir(mode=0o700, exist_ok=True)
        check_private(each)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} cannot be written")
    return folder
