"""What all commands share: the parser, the standard streams, lines of progress."""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NoReturn

from resgym.texts import one_line, printable
from resgym.trust import import_modules


def told(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a type of argparse that shows the errors of a function as they are."""

    def tell(text: str) -> Any:
        try:
            return read(text)
        except (OSError, ValueError) as error:  # a name may be too long, a folder may be closed
            raise argparse.ArgumentTypeError(str(error)) from error

    return tell


def _path(text: str) -> Path:
    if not text:  # would be the current folder
        raise ValueError("must be a path, got ''")
    return Path(text)


class OneLineParser(argparse.ArgumentParser):
    """An `ArgumentParser` with ``--import``, errors on one line, and no empty paths."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.register("type", Path, told(_path))
        # It imports as soon as it is read, before any name is looked up.
        self.add_argument(
            "--import",
            type=told(lambda name: import_modules([name])),
            metavar="MODULE",
            help="import this Python module first; the players, rewards and algorithms that it "
            "registers can then be named; may be repeated",
        )

    def parse_known_args(self, *given: Any) -> Any:  # type: ignore[override]
        """Refuse what is unknown here, so that the error names the command that was typed."""
        args, unknown = super().parse_known_args(*given)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return args, unknown

    def error(self, message: str) -> NoReturn:
        """End the program with exit code 2."""
        self.exit(2, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")


class _Printable:
    """A stream that text from files cannot control."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(printable(text, "\n"))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def standard_streams(name: str, plain: bool = False) -> Iterator[None]:
    """Let a command read and print whatever its streams are.

    A closed stream is empty, or takes everything. What an encoding lacks is printed as an escape.
    A reader that leaves, such as ``head``, ends no command with an error. Where the output cannot
    be written, as on a full disk, the command ends with a line and code 1. A warning is one line.

    Args:
        name: of the command, which begins the line.
        plain: also escape all control characters that are printed.
    """
    streams = (("stdin", sys.stdin, "r"), ("stdout", sys.stdout, "w"), ("stderr", sys.stderr, "w"))
    for each, stream, mode in streams:
        if stream is None:
            setattr(sys, each, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    def warn(message: Any, *_: Any, **__: Any) -> None:
        print(f"{name}: warning: {one_line(message)}", file=sys.stderr)

    output = sys.stdout
    show = _Printable if plain else lambda stream: stream
    try:
        with (
            redirect_stdout(show(output)),
            redirect_stderr(show(sys.stderr)),
            warnings.catch_warnings(),
        ):
            warnings.showwarning = warn
            yield
    finally:
        try:
            output.flush()
        except OSError as error:
            # What could not be written must not be tried once more as Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
            if not isinstance(error, BrokenPipeError):
                print(f"{name}: standard output: {one_line(error)}", file=sys.stderr)
                raise SystemExit(1) from None


def progress_lines() -> Callable[[str], None]:
    """Return a function that shows a line on stderr, at most once a second, on a terminal only."""
    last = -1.0

    def show(line: str) -> None:
        nonlocal last
        if sys.stderr.isatty() and (now := time.monotonic()) - last >= 1.0:
            last = now
            print(line, file=sys.stderr, flush=True)

    return show
