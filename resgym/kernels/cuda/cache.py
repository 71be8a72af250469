"""The cache of compiled Triton kernels, checked so that a damaged file cannot give a wrong result.

Triton writes its files aside and renames them, so that several processes may compile at once, but
trusts what it finds. Here a digest of each file is kept beside them, in a `private_folder`.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from triton import knobs
from triton.runtime.cache import FileCacheManager

from resgym.kernels.private_folder import check_private, private_folder

_lock = threading.RLock()


@cache
def _warn(problem: str) -> None:
    """Warns once a process about each problem."""
    warnings.warn(f"Triton kernels: {problem}", RuntimeWarning, stacklevel=2)


@cache
def _own_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder of this process, deleted at its end."""
    return tempfile.TemporaryDirectory(prefix="resgym-triton-")


def _digest(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class CheckedCache(FileCacheManager):  # type: ignore[misc]
    """Triton's cache of one kernel, with digests."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        try:
            super().__init__(key, override, dump)
            check_private(self.cache_dir)
        except OSError as error:
            self._give_up(key, error)

    def _give_up(self, key: str, error: OSError) -> None:
        """Goes on in a folder of this process."""
        _warn(f"the cache cannot be written, compiled for this process only ({error})")
        self.key = key
        self.cache_dir = os.path.join(_own_folder().name, key)
        self.lock_path = os.path.join(self.cache_dir, "lock")
        os.makedirs(self.cache_dir, exist_ok=True)

    def put(self, data: object, filename: str, binary: bool = True) -> str:
        """Writes a file; returns where it is."""
        try:
            return str(super().put(data, filename, binary))
        except OSError as error:
            if self.cache_dir.startswith(_own_folder().name):
                raise
            self._give_up(self.key, error)
            return str(super().put(data, filename, binary))

    def put_group(self, filename: str, group: Mapping[str, str]) -> str:
        """Writes down which files make a kernel, their digests first."""
        digests = {name: _digest(path) for name, path in group.items()}
        self.put(json.dumps(digests), f"{filename}.sha256", binary=False)
        return str(super().put_group(filename, dict(group)))

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The files that make a kernel; None if there is none or one is not what it was."""
        group = super().get_group(filename)
        if not group:
            return None
        try:
            wanted = json.loads(Path(self._make_path(f"{filename}.sha256")).read_text())
            for path in group.values():
                check_private(path)
            found = {name: _digest(path) for name, path in group.items()}
        except (OSError, ValueError) as error:
            _warn(f"the cache cannot be used, compiling again ({error})")
            return None
        if found != wanted:
            _warn(f"the cache cannot be used, compiling again ({self.cache_dir} is damaged)")
            return None
        return dict(group)


@contextmanager
def checked_cache() -> Iterator[None]:
    """What is compiled within goes through `CheckedCache`, unless the user has set a manager."""
    with _lock, knobs.cache.scope():
        if knobs.cache.manager_class is None:
            knobs.cache.manager_class = CheckedCache
            # In a folder that the user has named, or in the user's caches.
            named = knobs.cache.dir
            given = named if named != knobs.cache.get_triton_dir("cache") else None
            try:
                knobs.cache.dir = str(private_folder("triton", given))
            except OSError as error:
                _warn(f"the cache cannot be used, compiled for this process only ({error})")
                knobs.cache.dir = _own_folder().name
        yield
