"""Whether files may run code: only after ``--trust`` on a command line, or within `trusting`."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_trusting = False


def is_trusting() -> bool:
    """Whether loaders may open files that run code, and configurations may name any code."""
    return _trusting


@contextmanager
def trusting(trust: bool = True) -> Iterator[None]:
    """Lets files run code meanwhile, in the whole process.

    Args:
        trust: False changes nothing.
    """
    global _trusting
    before = _trusting
    _trusting = before or trust
    try:
        yield
    finally:
        _trusting = before


def named_object(name: str, field: str) -> Any:
    """What a text ``module:attribute`` names, imported within `trusting` alone.

    Raises:
        ValueError: it is not trusted, has another form, or there is no such thing; calls it by
            ``field``.
    """
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise ValueError(f"{field} must be written like 'module:name', got {name!r}")
    if not is_trusting():
        raise ValueError(f"{field}: {name!r} names code, which only --trust runs")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (AttributeError, ImportError) as error:
        raise ValueError(
            f"{field}: {name!r} cannot be imported ({error}); its folder must be in PYTHONPATH"
        ) from error


def add_trust(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Adds ``--trust`` to a command line."""
    parser.add_argument(
        "--trust",
        action="store_true",
        help="let models, runs and configurations run code of their own; without it such are "
        "refused (give it only for files that you would run as programs)",
    )
