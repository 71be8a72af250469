"""What the command lines of training and studies share: options, exit codes, threads."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch

__all__ = ["OneLineParser", "add_options", "exit_code", "torch_threads"]

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


class OneLineParser(argparse.ArgumentParser):
    """As argparse, with errors in one line."""

    def error(self, message: str) -> NoReturn:
        """Ends the program with code 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Adds options that several commands have, by their names, such as ``--threads``."""
    for name in names:
        parser.add_argument(name, **_OPTIONS[name])


def exit_code(
    command: str, work: Callable[[], int | None], interrupted: str = "interrupted"
) -> int:
    """Runs a command; what went wrong becomes one line on stderr.

    Args:
        command: begins the line.
        work: the command; None stands for 0.
        interrupted: the line after Ctrl-C.

    Returns:
        0: done. 1: results could not be written, a process died or a loss became NaN. 2: the
        command line, a file or a player is not valid. 130: interrupted.
    """
    try:
        return work() or 0
    except (ArithmeticError, ImportError, OSError, RuntimeError, ValueError) as error:
        line = " ".join(str(error).split()) or type(error).__name__
        print(f"{command}: {line}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    except KeyboardInterrupt:
        print(f"{command}: {interrupted}", file=sys.stderr)
        return 130


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """So many threads of torch in the block.

    Raises:
        ValueError: fewer than 1.
    """
    if number < 1:
        raise ValueError(f"threads must be at least 1, got {number}")
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
