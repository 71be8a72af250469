"""The standard streams of a command: closed, full, of a reader that left, in any encoding."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from resgym.texts import one_line, printable


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

    output: Any = sys.stdout
    show: Any = _Printable if plain else lambda stream: stream
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
