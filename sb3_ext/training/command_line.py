"""What the command lines of training and studies share: options and exit codes."""

from __future__ import annotations

import argparse
from typing import Any

FAILED = (ArithmeticError, ImportError, OSError, RuntimeError)
"""For exit code 1: results could not be written, a process died or a loss became NaN."""

_OPTIONS: dict[str, dict[str, Any]] = {
    "--json": {"action": "store_true", "help": "print the result as JSON"},
    "--no-progress": {"action": "store_true", "help": "no progress on stderr"},
    "--set": {
        "action": "append",
        "default": [],
        "dest": "settings",
        "metavar": "KEY=VALUE",
        "help": "another value for a setting; may be repeated",
    },
    "--threads": {
        "type": int,
        "default": 1,
        "help": "threads of torch (default 1: small networks are slower with more)",
    },
    "--workers": {"type": int, "default": 2, "help": "processes that label (default 2)"},
}


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Adds options that several commands have, by their names, such as ``--threads``."""
    for name in names:
        parser.add_argument(name, **_OPTIONS[name])
