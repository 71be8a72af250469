"""The models of a folder, as the server lists them: nothing outside is reached."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

DEPTH = 4
"""Folders below the named one that are looked into."""

MAX_FOLDERS = 5_000
MAX_LISTED = 300
MANIFEST = "manifest.json"


def _folders(top: Path) -> Iterator[tuple[Path, list[str]]]:
    """Folders with the names of their plain files, in order; links are not followed.

    What has a name that no link can hold, such as bytes that are no UTF-8, is left out.
    """
    for number, (folder, below, files) in enumerate(os.walk(top)):
        here = Path(folder)
        depth = len(here.relative_to(top).parts)
        if number >= MAX_FOLDERS:
            return
        shown = sorted(n for n in below if not n.startswith(".") and n.isprintable())
        below[:] = shown if depth < DEPTH else []
        yield here, [name for name in files if name.isprintable() and _is_plain(here / name)]


def _is_plain(path: Path) -> bool:
    """Neither a link nor a pipe, which one would wait for."""
    return path.is_file() and not path.is_symlink()


def list_models(top: Path | None) -> dict[str, Path]:
    """Files ``.zip`` and folders of checkpoints below a folder, by their paths in it."""
    if top is None:
        return {}
    found = []
    for folder, files in _folders(top):
        found += [folder] if MANIFEST in files and folder != top else []
        found += [folder / name for name in sorted(files) if name.endswith(".zip")]
    return {path.relative_to(top).as_posix(): path for path in found[:MAX_LISTED]}
