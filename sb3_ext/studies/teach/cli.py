"""The command line: ``python -m sb3_ext.teach COMMAND``.

A command is a module with ``add_arguments(parser)`` and ``run(args, command)``, which returns the
exit code; the first line of its docstring is the command's help.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from resgym.cli import OneLineParser
from resgym.players.trust import add_trust, trusting
from sb3_ext.runs.command import command, torch_threads
from sb3_ext.studies.teach import compare, everything, generate, robust, ship, train
from sb3_ext.training.command_line import FAILED

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
        added = commands.add_parser(
            name,
            help=(module.__doc__ or "").splitlines()[0],
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(added)
        add_trust(added)
    args = parser.parse_args(given)

    interrupted = "interrupted; the same command goes on from here"

    @command(f"teach {args.command}", failed=FAILED, interrupted=interrupted)
    def work(typed: Sequence[str]) -> int:
        with torch_threads(getattr(args, "threads", 1)), trusting(args.trust):
            return int(_COMMANDS[args.command].run(args, ["python", "-m", "sb3_ext.teach", *typed]))

    return work(given)
