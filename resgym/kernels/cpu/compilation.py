"""The decorator of compiled functions, with numba's cache in a folder that only the user can write.

Files of the cache are pickles and machine code, so they lie in a `private_folder`. Numba by itself
uses what an older source of an imported function left, and an unwritable folder ends the import.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    UserWideCacheLocator,
)

from resgym.kernels.private_folder import check_private, private_folder


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


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


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
        self._cache_path = str(private_folder("kernels", getattr(numba.config, "CACHE_DIR", None)))

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


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's files of one function, read if nobody else may have had a hand in them."""

    def paths(self) -> Iterator[Path]:
        """The files."""
        return Path(self._cache_path).glob(f"{Path(self._index_name).stem}.*nb?")

    def _load_index(self) -> Any:
        check_private(self._cache_path)
        for path in self.paths():
            check_private(path)
        return super()._load_index()


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, whose problems are warnings."""

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled code of a signature, or None."""
        found = None
        try:
            found = super().load_overload(sig, target_context)
        except Exception as error:
            _warn(f"the cache cannot be used, compiling again ({_text(error)})")
            with suppress(OSError):
                check_private(self._cache_path)
                for path in self._cache_file.paths():
                    path.unlink()
        if found is None:
            _tell()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Stores the compiled code of a signature, if it can be stored."""
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _warn(f"the cache cannot be written, compiled in memory ({_text(error)})")


def compiled(function: Callable[..., Any]) -> Any:
    """Compiles a function at its first call, or loads it from disk; it runs without the GIL.

    Use it for what Python calls, and `inlined` for what only compiled functions call.
    """
    dispatcher: Any = numba.njit(nogil=True)(function)
    try:
        dispatcher._cache = _Cache(function)
    except Exception as error:
        _warn(f"there is no cache, compiling in memory ({_text(error)})")
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
