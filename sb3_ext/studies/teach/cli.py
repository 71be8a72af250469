"""The command line: ``python -m sb3_ext.teach COMMAND``.

A command is a module with ``HELP`` (one line), ``add_arguments(parser)`` and ``run(args, command)``
that returns the exit code; it is entered in `COMMANDS`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from resgym.players.trust import add_trust, trusting

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "compare": "sb3_ext.studies.teach.compare",
    "generate": "sb3_ext.studies.teach.generate",
    "robust": "sb3_ext.studies.teach.robust",
    "run": "sb3_ext.studies.teach.everything",
    "ship": "sb3_ext.studies.teach.ship",
    "train": "sb3_ext.studies.teach.train",
}
"""Name of a command -> its module."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code.

    0: done. 1: results could not be written, or a process died. 2: the command line, a file or a
    dataset is not valid; one line says why. 130: interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    modules = {name: importlib.import_module(module) for name, module in COMMANDS.items()}
    parser = argparse.ArgumentParser(
        prog="python -m sb3_ext.teach",
        description="Positions labelled by the solver, and players taught by them.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in modules.items():
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        add_trust(command)
    args = parser.parse_args(given)
    try:
        with trusting(args.trust):
            return int(modules[args.command].run(args, ["python", "-m", "sb3_ext.teach", *given]))
    except ValueError as error:
        print(f"teach {args.command}: {_line(error)}", file=sys.stderr)
        return 2
    except (ImportError, OSError, RuntimeError) as error:
        print(f"teach {args.command}: {_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            f"teach {args.command}: interrupted; the same command goes on from here",
            file=sys.stderr,
        )
        return 130


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
