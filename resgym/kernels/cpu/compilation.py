"""The decorator of compiled functions, with numba's cache in a folder that only the user can write.

Files of the cache are pickles and machine code, so they lie in a private folder. Numba by itself
uses what an older source of an imported function left, and an unwritable folder ends the import.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserWideCacheLocator


@cache
def _warn(problem: str) -> None:
    """Warns once a process about each problem."""
    warnings.warn(f"compiled kernels: {problem}", RuntimeWarning, stacklevel=2)


@cache
def _tell() -> None:
    """Says once a process why it is slow to begin, to a person who looks at it."""
    log = logging.getLogger("resgym")
    log.log(
        logging.WARNING if sys.stderr.isatty() else logging.INFO,
        "resgym: compiling for this processor, which takes some seconds the first time",
    )


def _private_folder() -> Path:
    """Where the files lie: in numba's CACHE_DIR, or in ``resgym`` in the user's caches.

    Raises:
        OSError: it cannot be made, or somebody else may have had a hand in it.
    """
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(getattr(numba.config, "CACHE_DIR", "") or Path(caches, "resgym"), "kernels")
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    for each in (folder.parent, folder):
        each.mkdir(mode=0o700, exist_ok=True)
        found = each.lstat()
        # Folders of a user are private on Windows as they are.
        others = hasattr(os, "getuid") and (
            found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        )
        if others or stat.S_ISLNK(found.st_mode):
            raise PermissionError(f"{each} must be a folder that only you can write, and no link")
    return folder


@cache
def _digest_of_sources(folder: Path) -> str:
    """A digest of all that a kernel of a folder may be made of, constants of the rule included."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[2]
    rule = (file for name in ("game", "kernels") for file in (package / name).rglob("*.py"))
    for file in sorted({*folder.glob("*.py"), *rule}):
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


class _Locator(UserWideCacheLocator):  # type: ignore[misc]
    """Says to numba where the files of a function lie, and what they are made of."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._py_file = py_file
        self._lineno = py_func.__code__.co_firstlineno
        self._cache_path = str(_private_folder())

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        """The locator of a function; what is wrong with the folder is raised, not left out."""
        return cls(py_func, py_file)

    def get_source_stamp(self) -> str:
        """See numba."""
        return _digest_of_sources(Path(self._py_file).parent)

    def get_disambiguator(self) -> str:
        """See numba: a part of the names, so that versions do not take each other's files away."""
        return f"{self._lineno}-{self.get_source_stamp()[:16]}"


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Locator]  # type: ignore[assignment]  # noqa: RUF012


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, whose problems are warnings."""

    _impl_class = _Implementation

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled code of a signature, or None."""
        found = self._tried(super().load_overload, sig, target_context)
        if found is None:
            _tell()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Stores the compiled code of a signature, if it can be stored."""
        self._tried(super().save_overload, sig, data)

    def _tried(self, do: Callable[..., Any], *given: Any) -> Any:
        try:
            return do(*given)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            _warn(f"{self._cache_path} cannot be used, compiling in memory ({problem})")


def compiled(function: Callable[..., Any]) -> Any:
    """Compiles a function at its first call, or loads it from disk; it runs without the GIL.

    Use it for what Python calls, and `inlined` for what only compiled functions call.
    """
    dispatcher: Any = numba.njit(nogil=True)(function)
    try:
        dispatcher._cache = _Cache(function)
    except Exception as error:
        _warn(f"there is no cache, compiling in memory ({type(error).__name__}: {error})")
    return dispatcher


def inlined(function: Callable[..., Any], **more: Any) -> Any:
    """A function that compiled functions call; it becomes part of them and is not cached itself.

    It may neither make arrays nor return any: no references are counted in it, which would take a
    third of the time of small functions. So a compiled function leaves loops over rows to one.
    ``more`` are options of numba's.
    """
    options: dict[str, Any] = {"nogil": True, "_nrt": False, **more}
    with suppress(Exception):  # a numba with other insides than those that are known
        from resgym.kernels.cpu.parts import PartCompiler

        options["pipeline_class"] = PartCompiler
    return numba.njit(**options)(function)


def lies_on_disk(function: Any) -> bool:
    """Whether a compiled function lies on disk for this processor, whatever its arguments."""
    try:
        processor = function.targetctx.codegen().magic_tuple()
        return any(key[1] == processor for key in function._cache._cache_file._load_index())
    except Exception:
        return False
