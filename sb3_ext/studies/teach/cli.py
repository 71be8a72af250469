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
from sb3_ext.training.command_line import OneLineParser, exit_code, torch_threads

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
    """Runs a command; returns the exit code, see `exit_code`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    modules = {name: importlib.import_module(module) for name, module in COMMANDS.items()}
    parser = OneLineParser(
        prog="python -m sb3_ext.teach",
        description="Positions labelled by the solver, and players that imitate it.",
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

    def work() -> int:
        with torch_threads(getattr(args, "threads", 1)), trusting(args.trust):
            return int(modules[args.command].run(args, ["python", "-m", "sb3_ext.teach", *given]))

    return exit_code(
        f"teach {args.command}", work, "interrupted; the same command goes on from here"
    )
