"""Whether files may run code: only after ``--trust`` on a command line, or within `trusting`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

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


def add_trust(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Adds ``--trust`` to a command line."""
    parser.add_argument(
        "--trust",
        action="store_true",
        help="let models, runs and configurations run code of their own; without it such are "
        "refused (give it only for files that you would run as programs)",
    )
