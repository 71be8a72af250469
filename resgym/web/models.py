"""The models in a folder, as the server lists them; nothing outside is read."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

DEPTH = 4
"""Number of folder levels that are searched."""

MAX_FOLDERS = 5_000
MAX_LISTED = 300
MANIFEST = "manifest.json"


def list_models(top: Path | None) -> dict[str, Path]:
    """Return the ``.zip`` files and checkpoint folders below a folder, by their relative paths.

    Links are not followed. Special files such as pipes are left out, and names that a link cannot
    contain, such as bytes that are not UTF-8.
    """
    if top is None:
        return {}
    found: list[Path] = []
    for folder, below, files in islice(os.walk(top), MAX_FOLDERS):
        here = Path(folder)
        deep = len(here.relative_to(top).parts) >= DEPTH
        below[:] = sorted(n for n in below if not (deep or n.startswith(".")) and n.isprintable())
        for name in sorted(files):
            path = here / name
            wanted = path.suffix == ".zip" or (name == MANIFEST and here != top)
            if wanted and name.isprintable() and path.is_file() and not path.is_symlink():
                found.append(here if name == MANIFEST else path)
    return {path.relative_to(top).as_posix(): path for path in found[:MAX_LISTED]}
