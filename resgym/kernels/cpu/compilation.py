"""The decorator of compiled functions, with a cache on disk that cannot give a wrong result.

Numba's own cache trusts its files: a damaged one is an obscure exception or wrong machine code, one
left by an older source of an imported function is used as it is, and a folder that cannot be
written ends the import. Here every file is named after all that went into it and starts with a
digest of the rest. Files are pickles and machine code, so they lie in a `private_folder`.
"""

from __future__ import annotations

import hashlib
import inspect
import pickle
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserWideCacheLocator
from numba.core.serialize import dumps

from resgym.files import write_file
from resgym.kernels.private_folder import check_private, private_folder

_DIGEST_SIZE = 32


@cache
def _warn(problem: str) -> None:
    """Warns once a process about each problem."""
    warnings.warn(f"compiled kernels: {problem}", RuntimeWarning, stacklevel=2)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _digest_of_sources(function: Callable[..., Any]) -> str:
    """A digest of all that a kernel may be made of, constants of the rule included."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[2]
    rule = (file for folder in ("game", "kernels") for file in (package / folder).rglob("*.py"))
    # Its neighbours too, which it may call.
    files = {*Path(inspect.getfile(function)).parent.glob("*.py"), *rule}
    for file in sorted(files):
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


class _Files:
    """The files of one function: a digest, then the compiled code as numba stores it.

    Their names start with ``stem``; ``version`` is whatever makes older files worthless.
    """

    def __init__(self, folder: str, stem: str, version: str) -> None:
        self._folder = Path(folder)
        self._stem = stem
        self._version = version

    def _path(self, key: Any) -> Path:
        name = hashlib.sha256(f"{self._version}\n{key!r}".encode()).hexdigest()[:24]
        return self._folder / f"{self._stem}.{name}.kernel"

    def load(self, key: Any) -> Any:
        """What was saved under a key, or None; an error if others may have had a hand in it."""
        path = self._path(key)
        check_private(self._folder)
        try:
            check_private(path)
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        payload = content[_DIGEST_SIZE:]
        if hashlib.sha256(payload).digest() != content[:_DIGEST_SIZE]:
            raise ValueError(f"{path} is damaged")
        return pickle.loads(payload)

    def save(self, key: Any, data: Any) -> None:
        check_private(self._folder)
        payload = dumps(data)
        write_file(self._path(key), hashlib.sha256(payload).digest() + payload)


class _Locator(UserWideCacheLocator):  # type: ignore[misc]
    """Says to numba where the files lie."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._py_file = py_file
        self._lineno = py_func.__code__.co_firstlineno
        self._cache_path = str(private_folder("kernels", getattr(numba.config, "CACHE_DIR", None)))

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        """The locator of a function; what is wrong with the folder is raised, not left out."""
        return cls(py_func, py_file)


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Locator]  # type: ignore[assignment]  # noqa: RUF012


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, on `_Files` instead of its own index and data files."""

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        version = f"{numba.__version__}\n{_digest_of_sources(function)}"
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, version)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled code of a signature, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            _warn(f"the cache cannot be used, compiling again ({_text(error)})")
            return None

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


def is_cached(function: Any, *arguments: Any) -> bool:
    """Whether a compiled function lies on disk for arguments of these types."""
    try:
        signature = tuple(function.typeof_pyval(argument) for argument in arguments)
        key = function._cache._index_key(signature, function.targetctx.codegen())
        return function._cache._cache_file.load(key) is not None
    except Exception:
        return False
