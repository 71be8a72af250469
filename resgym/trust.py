"""Code from files: modules named on a command line, and pickles after ``--trust``.

A file may choose registered names and set numbers, strings and shapes. `sb3_ext.config.effects`
checks configurations by that rule, and docs/security.md explains it. This module does what the
options ``--import`` and ``--trust`` ask for. A program's own code is not checked.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_pickles = True
_imports = True
_modules: list[str] = []
_named: set[str] = set()  # modules that a command line or a program named
_files: frozenset[Path] = frozenset()


@contextmanager
def command_line(trust: bool, *files: str | os.PathLike[str] | None) -> Iterator[None]:
    """Run a command: only with ``trust`` are these files trusted and may pickles be opened."""
    global _pickles, _files
    before = _pickles, _files
    _pickles = trust
    _files = frozenset(Path(each).resolve() for each in files if trust and each)
    try:
        yield
    finally:
        _pickles, _files = before


@contextmanager
def outside() -> Iterator[None]:
    """Answer untrusted requests: nothing is imported, and no pickle is opened."""
    global _pickles, _imports
    before = _pickles, _imports
    _pickles = _imports = False
    try:
        yield
    finally:
        _pickles, _imports = before


def is_trusted(file: str | os.PathLike[str]) -> bool:
    """Return whether the command line named this file together with ``--trust``."""
    return Path(file).resolve() in _files


def check_pickle(path: str | os.PathLike[str]) -> None:
    """Raise ValueError unless a file with pickles may be opened now."""
    if not _pickles:
        raise ValueError(
            f"{os.fspath(path)}: contains pickles, which can run code; expected --trust, or "
            "the folder of a run or a checkpoint, which has none"
        )


def regular_file(path: str | os.PathLike[str], field: str) -> Path:
    """Return the path of a regular file; raise ValueError for a pipe, socket or device."""
    found = Path(path)
    if found.exists() and not found.is_file():
        raise ValueError(f"{field}: got {os.fspath(path)!r}; expected a regular file")
    return found


def add_trust(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--trust`` to a command line."""
    parser.add_argument(
        "--trust",
        action="store_true",
        help="trust the file or model named on this command line as much as your own program: it "
        "may import modules, connect and contain pickles; files that it names stay untrusted",
    )


def imported_modules() -> tuple[str, ...]:
    """Return the modules that were imported by name, for `import_modules` elsewhere."""
    return tuple(_modules)


def is_named(module: str) -> bool:
    """Return whether a command line or a program named this module for use in files."""
    return module in _named


def import_modules(names: Iterable[str], named: bool = True) -> None:
    """Import modules by dotted name, also from the working folder, as ``python -m`` does.

    Files may then name the contents of these modules, unless ``named`` is false.

    Raises:
        ValueError: a name is not a dotted name, or its import fails.
    """
    for name in names:
        if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", name):
            raise ValueError(f"must be a module such as mypackage.myplayers, got {name!r}")
        if not {"", os.getcwd()} & set(sys.path):
            sys.path.append(os.getcwd())
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:  # whatever a module may do
            raise ValueError(
                f"{name} cannot be imported: {type(error).__name__}: {error}"
            ) from error
        if name not in _modules:
            _modules.append(name)
        if named:
            _named.add(name)


def named_object(path: str, field: str = "name") -> Any:
    """Return the object at ``module:name``; errors name ``field``.

    Raises:
        ValueError: the form is wrong, imports are not allowed now, the import fails, or the
            module has no such name.
    """
    module, _, name = path.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), name)):
        raise ValueError(f"{field} must be written like 'module:name', got {path!r}")
    if module not in _named:
        if not _imports:
            raise ValueError(f"{field}: {path!r} names code; expected a registered name")
        try:
            import_modules([module], named=False)
        except ValueError as error:
            raise ValueError(f"{field}: {path!r} cannot be imported: {error}") from error
    if not hasattr(sys.modules[module], name):
        raise ValueError(f"{field}: {path!r} cannot be imported: {module} has no {name}")
    return getattr(sys.modules[module], name)


def named_class(path: str, base: type) -> type:
    """Return the class at ``module:Class``, which must derive from ``base``."""
    found = named_object(path)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ValueError(f"{path!r} must be a class derived from {base.__name__}, got {found!r}")
    return found
