"""What command lines share: one line for an error, exit codes, signals, options, torch's switches.

SIGINT, SIGTERM and SIGHUP stop a run after a checkpoint; SIGUSR1 writes a checkpoint and continues.
Only the main thread receives signals; other threads install no handlers.

This module imports nothing that takes long, so that Ctrl-C is answered while the rest is imported.
"""

from __future__ import annotations

import argparse
import errno
import functools
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Self

from resgym.command import standard_streams
from resgym.texts import one_line, printable
from resgym.trust import command_words, packaged

SIGHUP = getattr(signal, "SIGHUP", signal.SIGTERM)  # not on Windows

Main = Callable[[Sequence[str]], int]

FAILED = (ArithmeticError, ImportError, MemoryError, OSError, RuntimeError, ValueError)
"""Errors that a line reports: exit code 2 for a ValueError, whose cause is what was given, and 1
for the others: results could not be written, a process died or a loss became NaN."""


def command(name: str, interrupted: str = "interrupted") -> Callable[[Main], Callable[..., int]]:
    """Makes a function of the arguments a command, which reports errors by exit codes.

    0 is what the function returned. 2: the command line, a file or a folder is not valid. 1:
    training became NaN, or results could not be written. 130: Ctrl-C. 143: SIGTERM. 129: SIGHUP.
    Each with one line on stderr. 141, without one: the reader of the output has left.

    Args:
        name: name of the command, which begins the line.
        interrupted: what the line says after Ctrl-C and SIGTERM.
    """

    def decorate(main: Main) -> Callable[..., int]:
        @functools.wraps(main)
        def run(arguments: Sequence[str] | None = None) -> int:
            given = list(sys.argv[1:] if arguments is None else arguments)
            try:
                with standard_streams(name), command_words(given), before_training():
                    return main(given)
            except KeyboardInterrupt:
                # Where it has come through `exec` of a text, as when a dataclass is made, Python
                # would end by the signal after all; running another one makes it forget.
                exec("")
                code, message = 130, interrupted
            except SystemExit as end:
                if end.code not in TERMINATED:
                    raise
                code, message = int(end.code), interrupted
            except BrokenPipeError:
                return BROKEN_PIPE
            except FAILED as error:
                # Only what was given can have such a name.
                too_long = getattr(error, "errno", None) == errno.ENAMETOOLONG
                code = 2 if too_long or isinstance(error, ValueError) else 1
                message = one_line(error) if str(error) else _without_words(error)
            print(f"{name}: {message}", file=sys.stderr)
            return code

        return run

    return decorate


def _without_words(error: BaseException) -> str:
    """Where an error without a message comes from, as of an ``assert`` in somebody's wrapper."""
    *_, last = traceback.extract_tb(error.__traceback__)
    return one_line(f"{type(error).__name__} at {last.filename}, line {last.lineno}: {last.line}")


def start(name: str, path: str) -> int:
    """Imports the command ``module:function`` and runs it, with the arguments of this process."""

    def run(given: Sequence[str]) -> int:
        with while_importing(f"{name}: interrupted"):
            main: Main = packaged(path)
        return main(given)

    return command(name)(run)()


BROKEN_PIPE, TERMINATED = 141, (129, 143)
"""Exit codes as in a shell, of a program whose reader has left, or that SIGHUP or SIGTERM ended."""


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def before_training() -> Iterator[None]:
    """Handle signals until a run installs its own handlers.

    A SIGUSR1 does nothing, a SIGTERM is as in `signals_raise_exit`.
    """
    if not hasattr(signal, "SIGUSR1"):  # not on Windows
        yield
        return
    with _handled(signal.SIGUSR1, signal.SIG_IGN), signals_raise_exit():
        yield


@contextmanager
def while_importing(message: str) -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP end the process at once, with a line: nothing is to be saved yet.

    As exceptions they would be lost, or become others, inside modules that are written in C. The
    code is 130, 143 or 129.
    """

    def end(number: int, frame: FrameType | None) -> None:
        os.write(2, f"{message}\n".encode())
        os._exit(128 + number)

    with (
        _handled(signal.SIGINT, end, signal.default_int_handler),
        _handled(signal.SIGTERM, end),
        _handled(SIGHUP, end, signal.SIG_DFL),
    ):
        yield


@contextmanager
def signals_raise_exit() -> Iterator[None]:
    """Raise SystemExit on an unhandled SIGTERM or SIGHUP, so that ``with`` blocks clean up."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    with (
        _handled(signal.SIGTERM, leave, signal.SIG_DFL),
        _handled(SIGHUP, leave, signal.SIG_DFL),
    ):
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
        # None stands for a handler that was not installed from Python.
        signal.signal(number, signal.SIG_DFL if before is None else before)


class RunSignals(ExitStack):
    """Hands signals to a run while the block lasts.

    A second one of them is handled as it was before (it ends the program at once).

    Args:
        stop: called at the first SIGINT, SIGTERM or SIGHUP, with the signal; it has to be short.
        checkpoint: called at every SIGUSR1.
    """

    def __init__(
        self, stop: Callable[[signal.Signals], None], checkpoint: Callable[[], None]
    ) -> None:
        super().__init__()
        self._stop = stop
        self._checkpoint = checkpoint

    def __enter__(self) -> Self:
        """Installs the handlers; `close` puts those of before back, and again is harmless."""
        self.close()
        self._stopped = False
        names = ("SIGTERM", "SIGINT", "SIGUSR1", "SIGHUP")
        for number in (each for each in signal.Signals if each.name in names):
            if number != SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # by nohup
                self.enter_context(_handled(number, self._note))
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        received = signal.Signals(number)
        if received.name == "SIGUSR1":
            self._checkpoint()
        elif self._stopped:
            self.close()
            signal.raise_signal(number)
        else:
            self._stopped = True
            self._stop(received)


_OPTIONS: dict[str, dict[str, Any]] = {
    "--actors": {
        "type": int,
        "default": 0,
        "help": "processes on a Ray cluster that share the work, one thread each (default 0: none)",
    },
    "--no-progress": {"action": "store_true", "help": "do not print progress"},
    "--set": {
        "action": "append",
        "default": [],
        "dest": "settings",
        "metavar": "KEY=VALUE",
        "help": "change a setting, such as a.b=1; may be repeated",
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
        "help": "threads of PyTorch (default 1; more are slower for small networks)",
    },
}


def add_options(parser: argparse._ActionsContainer, *names: str) -> None:
    """Adds options that several commands have, by their names, such as ``--threads``."""
    for name in names:
        parser.add_argument(name, **_OPTIONS[name])


Report = Callable[[str], None]
"""Called with one line of progress for every step."""


def reporter(shown: bool) -> Report:
    """Return a function that prints lines to stderr at once, or nothing."""

    def report(line: str) -> None:
        if shown:
            print(printable(line), file=sys.stderr, flush=True)

    return report


@contextmanager
def torch_threads(number: int | None) -> Iterator[None]:
    """This many threads of torch in the block, 1 to 1024; None: as many as before."""
    import torch

    before = torch.get_num_threads()
    if number is not None and not 1 <= number <= 1024:
        raise ValueError(f"threads must be between 1 and 1024, got {number}")
    torch.set_num_threads(before if number is None else number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def numerics(switches: Any) -> Iterator[None]:
    """Those of some `sb3_ext.config.sections.Switches` that are True are on in the block."""
    import torch

    with ExitStack() as after:
        if switches.deterministic:
            warn = torch.is_deterministic_algorithms_warn_only_enabled()
            before = torch.are_deterministic_algorithms_enabled()
            after.callback(torch.use_deterministic_algorithms, before, warn_only=warn)
            # Read when CUDA begins to multiply matrices; without it cuBLAS is refused.
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(True, warn_only=True)
        if switches.tf32:
            precision = torch.get_float32_matmul_precision()
            after.callback(torch.set_float32_matmul_precision, precision)
            torch.set_float32_matmul_precision("high")
        if switches.detect_anomaly:
            after.enter_context(torch.autograd.set_detect_anomaly(True))
        yield
