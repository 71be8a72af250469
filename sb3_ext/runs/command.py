"""Command lines: one line for what is wrong, and an exit code, from the first moment on.

This module imports nothing that takes long, so that Ctrl-C is answered while the rest is imported.
"""

from __future__ import annotations

import atexit
import errno
import functools
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from sb3_ext.config.checks import one_line
from sb3_ext.runs.signals import TERMINATED, before_training, while_importing

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
