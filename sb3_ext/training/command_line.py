"""What the command lines of training and studies share: options, exit codes, threads."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from sb3_ext.runs.command import command as run_command

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


def exit_code(
    command: str, work: Callable[[], int | None], interrupted: str = "interrupted"
) -> int:
    """Runs a command as `sb3_ext.runs.command.command` does; None stands for 0."""
    return run_command(command, failed=FAILED, interrupted=interrupted)(lambda _: work() or 0)([])


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """So many threads of torch in the block, at least 1."""
    if number < 1:
        raise ValueError(f"threads must be at least 1, got {number}")
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
