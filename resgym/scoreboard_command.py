"""``resgym scoreboard`` on the command line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from resgym.trust import add_trust


def _run(args: argparse.Namespace) -> None:
    from resgym.scoreboard import run

    run(args)


def add_scoreboard(commands: Any) -> None:
    """Add ``scoreboard`` to the commands of ``resgym``."""
    about = "show the exact worst case and rho of hosts, all from the same starts"
    command = commands.add_parser("scoreboard", help=about, description=about)
    _add_options(command)
    file = Path("scoreboard.json")
    command.set_defaults(run=_run, name=None, points=None, file=file, page=[], json=False)
    about = "measure a host and add it to the table (a minute or two)"
    actions = command.add_subparsers(dest="action", metavar="add MODEL", help=about)
    # Options may stand on both sides of the word: here they have no defaults.
    adding = actions.add_parser("add", description=about, argument_default=argparse.SUPPRESS)
    adding.add_argument("model", metavar="MODEL", help="a host's name or a model's path")
    _add_options(adding)


def _add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--name", help="name in the table (default: the model's own)")
    text = "points of a start (default: both)"
    add("--points", type=int, action="append", choices=(5, 20), help=text)
    text = "file with more rows; add writes to it (default scoreboard.json)"
    add("--file", type=Path, metavar="FILE", help=text)
    text = "update the marked tables of this Markdown page; may be repeated"
    add("--page", type=Path, action="append", metavar="FILE", help=text)
    add("--json", action="store_true", help="print the rows as JSON")
    add_trust(parser)
