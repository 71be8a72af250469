"""What command lines share: options, exit codes, threads."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

_OPTIONS: dict[str, dict[str, Any]] = {
    "--actors": {
        "type": int,
        "default": 0,
        "help": "processes on a Ray cluster that do the work, one thread each (default 0: none)",
    },
    "--no-progress": {"action": "store_true", "help": "no progress on stderr"},
    "--set": {
        "action": "append",
        "default": [],
        "dest": "settings",
        "metavar": "KEY=VALUE",
        "help": "another value for a setting, such as a.b=1; may be repeated",
    },
    "--starts": {
        "metavar": "FILE",
        "help": "draw the starts of all games from this file, one position a line",
    },
    "--stop": {
        "action": "append",
        "default": [],
        "metavar": "RULE=VALUE",
        "help": "stop early and save when a rule is met: max_seconds, max_updates, ..., or "
        "until={condition: bound, field: METRIC, lower: 0.2}; may be repeated, see "
        "docs/configuration.md",
    },
    "--threads": {
        "type": int,
        "default": 1,
        "help": "threads of torch (default 1: small networks are slower with more)",
    },
}


def add_options(parser: argparse._ActionsContainer, *names: str) -> None:
    """Adds options that several commands have, by their names, such as ``--threads``."""
    for name in names:
        parser.add_argument(name, **_OPTIONS[name])


Report = Callable[[str], None]
"""Called with one line for every step of the work."""


def reporter(shown: bool) -> Report:
    """A function that prints lines at once, to stderr; silence unless they are shown."""
    return partial(print, file=sys.stderr, flush=True) if shown else lambda line: None


def starts_setting(starts: str | None, key: str) -> list[str]:
    """The option ``--starts``, if it was given, as a change of a configuration's key."""
    return [] if starts is None else [f"{key}={json.dumps(starts)}"]


@contextmanager
def torch_threads(number: int | None) -> Iterator[None]:
    """So many threads of torch in the block, 1 to 1024; None: as many as before."""
    if number is not None and not 1 <= number <= 1024:
        raise ValueError(f"threads must be between 1 and 1024, got {number}")
    before = torch.get_num_threads()
    torch.set_num_threads(before if number is None else number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
