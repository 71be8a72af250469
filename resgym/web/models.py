"""The models of a folder, as the server lists them: nothing outside is reached."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

DEPTH = 4
"""Folders below the named one that are looked into."""

MAX_FOLDERS = 5_000
MAX_LISTED = 300
MANIFEST = "manifest.json"


def list_models(top: Path | None) -> dict[str, Path]:
    """Files ``.zip`` and folders of checkpoints below a folder, by their paths in it.

    Links are not followed, and what has a name that no link can hold, such as bytes that are no
    UTF-8, is left out; so is what is no plain file, like a pipe, which one would wait for.
    """
    found: list[Path] = []
    for folder, below, files in islice(os.walk(top), MAX_FOLDERS) if top else ():
        here = Path(folder)
        deep = len(here.relative_to(top or "").parts) >= DEPTH
        below[:] = sorted(n for n in below if not (deep or n.startswith(".")) and n.isprintable())
        for name in sorted(files):
            path = here / name
            wanted = path.suffix == ".zip" or (name == MANIFEST and here != top)
            if wanted and name.isprintable() and path.is_file() and not path.is_symlink():
                found.append(here if name == MANIFEST else path)
    return {path.relative_to(top or "").as_posix(): path for path in found[:MAX_LISTED]}
