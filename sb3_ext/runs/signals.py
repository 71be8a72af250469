"""Signals to a run: time limits, preemption, Ctrl-C.

SIGINT and SIGTERM stop a run after a checkpoint; SIGUSR1 writes a checkpoint and continues. Only
the main thread receives signals; other threads install no handlers.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

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
