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
from sb3_ext.studies.teach import compare, everything, generate, robust, ship, train
from sb3_ext.training.command_line import exit_code, torch_threads

_COMMANDS = {
    "compare": compare,
    "generate": generate,
    "robust": robust,
    "run": everything,
    "ship": ship,
    "train": train,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code, see `exit_code`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = OneLineParser(
        prog="python -m sb3_ext.teach",
        description="Positions labelled by the solver, and players that imitate it.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=(module.__doc__ or "").splitlines()[0],
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        add_trust(command)
    args = parser.parse_args(given)

    def work() -> int:
        with torch_threads(getattr(args, "threads", 1)), trusting(args.trust):
            command = ["python", "-m", "sb3_ext.teach", *given]
            return int(_COMMANDS[args.command].run(args, command))

    return exit_code(
        f"teach {args.command}", work, "interrupted; the same command goes on from here"
    )
