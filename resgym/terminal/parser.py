"""Arguments of command lines, with errors on one line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from resgym.texts import one_line
from resgym.trust import import_modules


def told(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a type of argparse that shows the ValueErrors of a function as they are."""

    def tell(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return tell


def _path(text: str) -> Path:
    if not text:  # would be the current folder
        raise ValueError("must be a path, got ''")
    return Path(text)


def _imported(name: str) -> str:
    import_modules([name])
    return name


class OneLineParser(argparse.ArgumentParser):
    """An `ArgumentParser` with ``--import``, errors on one line, and no empty paths."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.register("type", Path, told(_path))
        # It imports as soon as it is read, before any name is looked up.
        self.add_argument(
            "--import",
            action="append",
            type=told(_imported),
            dest="modules",
            metavar="MODULE",
            help="import this Python module first; the players, rewards and algorithms that it "
            "registers can then be named; may be repeated",
        )

    def error(self, message: str) -> NoReturn:
        """End the program with exit code 2."""
        self.exit(2, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")
