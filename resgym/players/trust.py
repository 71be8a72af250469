"""What code is let in: modules that a command line names, and files after ``--trust`` alone.

``--import`` imports a module, so that what it registers (players, rewards, algorithms, ...) has a
name. A file may name a class as ``module:Class`` if the module was named so, or within `trusting`.
Processes that work for this one elsewhere are handed the names, see `imported_modules`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

_trusting = False
_modules: list[str] = []
_named: set[str] = set()  # of these, whom a command line named


def is_trusting() -> bool:
    """Whether loaders may open files that run code, and configurations may name any code."""
    return _trusting


def trusting(trust: bool = True) -> AbstractContextManager[None]:
    """Lets files run code meanwhile, in the whole process; ``trust=False`` changes nothing."""
    return _with_trust(_trusting or trust)


def distrusting() -> AbstractContextManager[None]:
    """Lets no file run code meanwhile, whatever was trusted before: what is read saved a state."""
    return _with_trust(False)


@contextmanager
def _with_trust(trust: bool) -> Iterator[None]:
    global _trusting
    before, _trusting = _trusting, trust
    try:
        yield
    finally:
        _trusting = before


def add_trust(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Adds ``--trust`` to a command line."""
    parser.add_argument(
        "--trust",
        action="store_true",
        help="let models, runs and configurations run code of their own; without it such are "
        "refused (give it only for files that you would run as programs)",
    )


def add_import(parser: argparse.ArgumentParser) -> None:
    """Adds ``--import``, which imports as soon as it is read, before any name is looked up."""

    def imported(name: str) -> str:
        try:
            import_modules([name])
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return name

    parser.add_argument(
        "--import",
        action="append",
        type=imported,
        dest="modules",
        metavar="MODULE",
        help="import this Python module first, so that the players, rewards, algorithms and so on "
        "that it registers have names; may be repeated",
    )


def imported_modules() -> tuple[str, ...]:
    """Modules that were imported by name, for `import_modules` in another process."""
    return tuple(_modules)


def import_modules(names: Iterable[str], named: bool = True) -> None:
    """Imports modules by their dotted names, also those in the working folder, as ``python -m``.

    Files that are not trusted may then name what is in them, unless ``named`` is false.

    Raises:
        ValueError: one is no dotted name, or its import fails.
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


def named_object(path: str, field: str = "") -> Any:
    """What ``module:name`` names; ``field`` is where it stands, for messages.

    Raises:
        ValueError: it has another form, the module was not named by ``--import`` and no file is
            trusted now, it cannot be imported, or there is no such thing in it.
    """
    place = f"{field}: " if field else ""
    module, _, name = path.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), name)):
        raise ValueError(f"{field or 'name'} must be written like 'module:name', got {path!r}")
    if module not in _named:
        if not _trusting:
            raise ValueError(
                f"{place}{path!r} names code: give --import {module}, or --trust to let a "
                "configuration import it (a saved state never may)"
            )
        try:
            import_modules([module], named=False)
        except ValueError as error:
            raise ValueError(f"{place}{path!r} cannot be imported: {error}") from error
    if not hasattr(sys.modules[module], name):
        raise ValueError(f"{place}{path!r} cannot be imported: {module} has no {name}")
    return getattr(sys.modules[module], name)


def named_class(path: str, base: type) -> type:
    """The class at ``module:Class``, derived from ``base``; ValueError as of `named_object`."""
    found = named_object(path)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ValueError(f"{path!r} must be a class derived from {base.__name__}, got {found!r}")
    return found
