"""What a text may become: parsing, judging and importing what it names, and which pickles open.

A text such as ``safe(budget=9)`` or ``mymodule:Host(depth=2)`` names an object and its arguments.
`parse_expression` parses all of them, and this module alone imports by a name.
`sb3_ext.config.effects` judges files with `code_in`; docs/security.md explains the rule. It limits
commands and servers (see `command_words`), not a program's own texts.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import pickle
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from resgym.files import StrPath

PROJECT = ("resgym", "sb3_ext")
MAX_EXPRESSION = 1000
"""Characters of a text that has arguments."""


class _Limits(NamedTuple):
    words: tuple[str, ...] | None = None  # None: this is a program, whose texts are its own
    pickles: bool = True
    files: frozenset[Path] = frozenset()


_limits = _Limits()
_modules: dict[str, bool] = {}  # imported; true if a command line or a program named the module


@contextmanager
def _limited(limits: _Limits) -> Iterator[None]:
    global _limits
    before, _limits = _limits, limits
    try:
        yield
    finally:
        _limits = before


def command_words(words: Iterable[str] = ()) -> Any:
    """Run a command: a text imports only if it stands in ``words`` or its module was named.

    A server passes no words. Pickles stay closed until `command_line` opens them.
    """
    return _limited(_Limits(tuple(words), pickles=False))


def command_line(trust: bool, *files: StrPath | None) -> Any:
    """Run a part of a command: only with ``trust`` are these files trusted and pickles opened."""
    trusted = frozenset(Path(file).resolve() for file in files if trust and file)
    return _limited(_limits._replace(pickles=trust, files=trusted))


def is_trusted(file: StrPath) -> bool:
    """Return whether the command line named this file together with ``--trust``."""
    return Path(file).resolve() in _limits.files


def trust_words(words: Iterable[str]) -> None:
    """Treat these texts of a trusted file like those of the command line."""
    global _limits
    if _limits.words is not None:
        _limits = _limits._replace(words=(*_limits.words, *words))


def check_pickle(path: StrPath) -> None:
    """Raise ValueError unless a file with pickles may be opened now."""
    if not _limits.pickles:
        raise ValueError(
            f"{os.fspath(path)}: contains pickles, which can run code; expected --trust, or "
            "the folder of a run or a checkpoint, which has none"
        )


def add_trust(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--trust`` to a command line."""
    parser.add_argument(
        "--trust",
        action="store_true",
        help="trust the file or model named on this command line as much as your own program: it "
        "may import modules, connect and contain pickles; files that it names stay untrusted",
    )


def parse_expression(text: str, field: str = "value") -> tuple[str, dict[str, Any]]:
    """Split a text into a name and the arguments in parentheses, which are literals.

    Raises:
        ValueError: what follows the name is not ``(key=literal, ...)``, or is too long.
    """
    name, bracket, rest = text.partition("(")
    if not bracket:
        return text, {}
    with suppress(MemoryError, RecursionError, SyntaxError, TypeError, ValueError):
        call = ast.parse(f"player({rest[:MAX_EXPRESSION]}", mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args:
            return name, {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    raise ValueError(f"{field} must be a name or written like 'safe(budget=9)', got {text!r:.200}")


def code_in(value: Any) -> Iterator[str]:
    """Every ``module:name`` in plain data: in texts, their arguments, lists, keys and values."""
    if isinstance(value, str):
        if _is_code(value.partition("(")[0]):
            yield value.partition("(")[0]
        with suppress(ValueError):
            yield from code_in(parse_expression(value)[1])
    elif isinstance(value, Mapping):
        yield from code_in([*value.items()])
    elif isinstance(value, (frozenset, list, set, tuple)):
        for each in value:
            yield from code_in(each)


def _is_code(text: str) -> bool:
    module, _, name = text.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), name))


def check_data(data: Any, field: str) -> None:
    """Raise ValueError if plain data from a file names code that a file may not name."""
    for path in code_in(data):
        if not may_name(path):
            raise ValueError(_refusal(path, field))


def _refusal(path: str, field: str) -> str:
    return (
        f"{field}: got {path!r:.200}, which imports code; expected a registered name, "
        f"--import MODULE, the same text on the command line, or --trust"
    )


def imported_modules() -> tuple[str, ...]:
    """Return the modules that were imported by name, for `import_modules` elsewhere."""
    return tuple(_modules)


def may_name(path: str) -> bool:
    """Return whether a file may name this ``module:name``.

    It may if the same text stands on the command line, or if the command line or a program named
    the module and the module defines the name. What it has imported from elsewhere stays closed.
    """
    if _limits.words is not None:  # not as a part of a path, which may be a stranger's
        whole = re.compile(rf"(?<![\w./\\]){re.escape(path)}(?![\w./\\])")
        if any(map(whole.search, _limits.words)):
            return True
    module, _, name = path.partition(":")
    if not _modules.get(module):
        return False
    found = getattr(sys.modules.get(module), name, None)
    origin = str(getattr(found, "__module__", ""))
    return not callable(found) or f"{origin}.".startswith(f"{module}.")


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
        _modules[name] = named or _modules.get(name, False)


def named_object(path: str, field: str = "name") -> Any:
    """Return the object at ``module:name``; errors name ``field``.

    Raises:
        ValueError: the form is wrong, the text may not import, the import fails, or the module has
            no such name.
    """
    if not _is_code(path):
        raise ValueError(f"{field} must be written like 'module:name', got {path!r:.200}")
    module, _, name = path.partition(":")
    if _limits.words is not None and not may_name(path):
        raise ValueError(_refusal(path, field))
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


def packaged(path: str, packages: Sequence[str] = PROJECT) -> Any:
    """Return the object at ``module:name``, or the module, of a package whose import does no harm.

    Tables of this project name their entries so, to import them when they are used.

    Raises:
        ImportError: the module is of no such package, or it or what it needs is missing.
        AttributeError: the module has no such name.
    """
    module, _, name = path.partition(":")
    if not any(f"{module}.".startswith(f"{package}.") for package in packages):
        raise ImportError(f"{module!r:.200} is not of {', '.join(packages)}")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


def unpacked(packed: bytes, modules: Iterable[str] = ()) -> Any:
    """Return what another process of the same Ray cluster has packed; its modules come first."""
    import_modules(modules)
    return pickle.loads(packed)
