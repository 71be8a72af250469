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
from sb3_ext.runs.command import command

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
    run = command(
        f"teach {given[0]}" if given else "teach",
        failed=(ImportError, OSError, RuntimeError),
        interrupted="interrupted; the same command goes on from here",
    )(_run)
    return run(given)


def _run(given: Sequence[str]) -> int:
    modules = {name: importlib.import_module(module) for name, module in COMMANDS.items()}
    parser = argparse.ArgumentParser(
        prog="python -m sb3_ext.teach",
        description="Positions labelled by the solver, and players taught by them.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in modules.items():
        each = commands.add_parser(
            name,
            help=module.HELP,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(each)
        add_trust(each)
    args = parser.parse_args(given)
    with trusting(args.trust):
        return int(modules[args.command].run(args, ["python", "-m", "sb3_ext.teach", *given]))
