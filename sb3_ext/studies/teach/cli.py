"""The command line: ``python -m sb3_ext.teach COMMAND``.

A command is a module with ``add_arguments(parser)`` and ``run(args, command)``, which returns the
exit code; the first line of its docstring is the command's help.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from resgym.cli import OneLineParser
from resgym.trust import add_trust, command_line
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import FAILED, torch_threads
from sb3_ext.studies.teach import compare, everything, generate, robust, ship, train

_COMMANDS = {
    "compare": compare,
    "generate": generate,
    "robust": robust,
    "run": everything,
    "ship": ship,
    "train": train,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code, see `command`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = OneLineParser(
        prog="python -m sb3_ext.teach",
        description="Positions labelled by the solver, and players that imitate it.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in _COMMANDS.items():
        subparser = commands.add_parser(
            name,
            help=(module.__doc__ or "").splitlines()[0],
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(subparser)
        add_trust(subparser)
    args = parser.parse_args(given)

    name, goes_on = f"teach {args.command}", "interrupted; the same command goes on from here"

    @command(name, failed=FAILED, interrupted=goes_on)
    def run(given: Sequence[str]) -> int:
        with (
            torch_threads(getattr(args, "threads", 1)),
            command_line(args.trust, getattr(args, "config", None)),
        ):
            typed = ["python", "-m", "sb3_ext.teach", *given]
            return int(_COMMANDS[args.command].run(args, typed))

    return run(given)
