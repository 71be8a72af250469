"""``resgym scoreboard`` on the command line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from resgym.players.trust import add_trust


def _run(args: argparse.Namespace) -> None:
    from resgym.scoreboard import run

    run(args)


def add_scoreboard(commands: Any) -> None:
    """Adds ``scoreboard`` to the commands of ``resgym``."""
    about = "the exact worst case and rho of hosts, from the same starts"
    command = commands.add_parser("scoreboard", help=about, description=about)
    add = command.add_argument
    add("action", nargs="?", choices=("add",), help="measure a host first, for a minute or two")
    add("model", nargs="?", help="a host's name, or the path of a saved model")
    add("--name", help="for the table (default: the model's own)")
    text = "of a start; a model may know fewer (default 5 20)"
    add("--points", type=int, nargs="+", choices=(5, 20), default=(5, 20), help=text)
    text = "rows to show beside those of the package; add writes there (default scoreboard.json)"
    add("--file", type=Path, default=Path("scoreboard.json"), metavar="FILE", help=text)
    text = "make the marked tables of these Markdown pages anew"
    add("--page", type=Path, nargs="+", default=[], metavar="FILE", help=text)
    add("--json", action="store_true", help="print the rows as JSON")
    add_trust(command)
    command.set_defaults(run=_run)
