"""Command lines: one line for what is wrong, an exit code and signals, from the first moment on.

SIGINT and SIGTERM stop a run after a checkpoint; SIGUSR1 writes a checkpoint and continues. Only
the main thread receives signals; other threads install no handlers.

This module imports nothing that takes long, so that Ctrl-C is answered while the rest is imported.
"""

from __future__ import annotations

import atexit
import errno
import functools
import importlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from sb3_ext.config.checks import one_line

Main = Callable[[Sequence[str]], int]

FAILED: tuple[type[BaseException], ...] = (ArithmeticError, ImportError, OSError, RuntimeError)
"""For exit code 1: results could not be written, a process died or a loss became NaN."""


def command(
    name: str,
    refused: tuple[type[BaseException], ...] = (ValueError,),
    interrupted: str = "interrupted",
) -> Callable[[Main], Callable[..., int]]:
    """Makes a function of the arguments a command, which reports errors by exit codes.

    0 is what the function returned. 2: the command line, a file or a folder is not valid. 1:
    training became NaN, or results could not be written. 130: Ctrl-C. 143: SIGTERM. Each with one
    line on stderr.

    Args:
        name: of the command, which begins the line.
        refused: errors for exit code 2; others of `FAILED` are for 1.
        interrupted: what the line says after Ctrl-C and SIGTERM.
    """

    def decorate(main: Main) -> Callable[..., int]:
        @functools.wraps(main)
        def run(arguments: Sequence[str] | None = None) -> int:
            try:
                with before_training():
                    return main(list(sys.argv[1:] if arguments is None else arguments))
            except KeyboardInterrupt:
                # Where it has come through `exec` of a text, as when a dataclass is made, Python
                # would end by the signal after all; running another one makes it forget.
                exec("")
                code, message = 130, interrupted
            except SystemExit as end:
                if end.code != TERMINATED:
                    raise
                code, message = TERMINATED, interrupted
            except (*refused, *FAILED) as error:
                # Only what was given can have such a name.
                too_long = getattr(error, "errno", None) == errno.ENAMETOOLONG
                code = 2 if too_long or isinstance(error, refused) else 1
                message = one_line(error)
            print(f"{name}: {message}", file=sys.stderr)
            return code

        return run

    return decorate


def start(name: str, module: str, function: str = "main", ranks: bool = False) -> int:
    """Imports a module and runs its command, with the arguments of this process.

    Its warnings are one line each, too. Only with `ranks` it may be one of several that torchrun
    started.
    """

    def show(message: Any, *_: Any, **__: Any) -> None:
        print(f"{name}: warning: {one_line(message)}", file=sys.stderr)

    def run(given: Sequence[str]) -> int:
        if not ranks and (number := os.environ.get("WORLD_SIZE") or "1") != "1":
            raise ValueError(f"WORLD_SIZE: torchrun can start only train, got {number} ranks")
        with while_importing(f"{name}: interrupted"):
            main: Main = getattr(importlib.import_module(module), function)
        return main(given)

    with warnings.catch_warnings():
        warnings.showwarning = show
        code = command(name)(run)()
    if ranks and os.environ.get("WORLD_SIZE", "1") != "1":
        # gloo's threads may outlive the group, and the C++ runtime aborts a process that ends while
        # they do: a finished run would now and then end with SIGABRT.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


TERMINATED = 143
"""The exit code of a program that SIGTERM ended, as in a shell."""


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def before_training() -> Iterator[None]:
    """What a signal does until a run has its own handlers, and where it never has any.

    A SIGUSR1 does nothing, a SIGTERM is as in `blocks_are_left`.
    """
    if not hasattr(signal, "SIGUSR1"):  # not on Windows
        yield
        return
    with _handled(signal.SIGUSR1, signal.SIG_IGN), blocks_are_left():
        yield


@contextmanager
def while_importing(message: str) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the process at once, with a line: nothing is to be saved yet.

    As exceptions they would be lost, or become others, inside modules that are written in C. The
    code is 130 or 143.
    """

    def end(number: int, frame: FrameType | None) -> None:
        os.write(2, f"{message}\n".encode())
        os._exit(128 + number)

    with _handled(signal.SIGINT, end, signal.default_int_handler), _handled(signal.SIGTERM, end):
        yield


@contextmanager
def blocks_are_left() -> Iterator[None]:
    """An unhandled SIGTERM ends the program as an exception, so that blocks are left."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(TERMINATED)

    with _handled(signal.SIGTERM, leave, signal.SIG_DFL):
        yield


def handle_again(number: int) -> None:
    """Gives a signal back to its Python handler, after a library in C has taken it."""
    handler = signal.getsignal(number)
    if _in_main_thread() and handler is not None:
        signal.signal(number, handler)


@contextmanager
def _handled(number: int, handler: Any, instead_of: Any = None) -> Iterator[None]:
    """A signal has this handler in the block, in the main thread and in the place of the other."""
    before = signal.getsignal(number)
    if not _in_main_thread() or instead_of not in (None, before):
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


class RunSignals:
    """Hands signals to a run while the block lasts.

    A second SIGINT or SIGTERM is handled as it was before (it ends the program at once).

    Args:
        stop: called at the first SIGINT or SIGTERM, with the signal; it has to be short.
        checkpoint: called at every SIGUSR1.
    """

    def __init__(
        self, stop: Callable[[signal.Signals], None], checkpoint: Callable[[], None]
    ) -> None:
        self._stop, self._checkpoint = stop, checkpoint
        self._before: dict[int, Any] = {}
        self._stopped = False

    def __enter__(self) -> RunSignals:
        """Installs the handlers."""
        self.__exit__()
        self._stopped = False
        if not _in_main_thread():
            return self
        names = ("SIGTERM", "SIGINT", "SIGUSR1")
        for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        """Puts the handlers of before back; again is harmless."""
        while self._before:
            number, handler = self._before.popitem()
            # None stands for a handler that was not installed from Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        received = signal.Signals(number)
        if received.name == "SIGUSR1":
            self._checkpoint()
        elif self._stopped:
            self.__exit__()
            signal.raise_signal(number)
        else:
            self._stopped = True
            self._stop(received)
