"""Arguments of command lines, with errors on one line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NoReturn

from resgym.trust import add_import


def one_line(message: object) -> str:
    """Return an error's message on one line, shortened in the middle if it is long."""
    text = " ".join(str(message).split())
    return text if len(text) <= 2000 else f"{text[:1000]} ... {text[-500:]}"


class OneLineParser(argparse.ArgumentParser):
    """An `ArgumentParser` with ``--import``, errors on one line, and no empty paths."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        def path(text: str) -> Path:
            if not text:  # would be the current folder
                raise argparse.ArgumentTypeError("must be a path, got ''")
            return Path(text)

        super().__init__(*arguments, **keywords)
        self.register("type", Path, path)
        add_import(self)

    def error(self, message: str) -> NoReturn:
        """End the program with exit code 2."""
        self.exit(2, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")
