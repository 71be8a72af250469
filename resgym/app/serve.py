"""``resgym serve`` on the command line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from resgym.game.spec import check_integer

ABOUT = """Play and explore in your browser: type a polynomial, see its Newton polyhedron,
play host or agent against any player, ask the solver, grow resolution trees, inspect charts with
their transforms and divisors, and share a game by its link. The server keeps no games: the link
contains the whole game."""

EXAMPLES = """examples:
  resgym serve                                 listen on http://127.0.0.1:8000/, this machine only
  resgym serve --port 8080 --models runs/best  offer the models of a folder as players
  resgym serve --import myplayers              offer the players that a module registers

Models are checkpoint folders, or .zip files of known classes: no file runs code here.
--host 0.0.0.0 lets other machines in: anybody who can reach the address sees the page and the
names of the models."""


def add_serve(commands: Any) -> None:
    """Add the command ``serve`` to the command line."""
    command = commands.add_parser(
        "serve",
        help="open a page to play and explore in a browser",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    add("--port", type=int, default=8000, help="port, 0 for any free one (default 8000)")
    add("--models", type=Path, metavar="FOLDER", help="offer models below this folder as players")
    add(
        "--workers",
        type=int,
        help="processes for moves (default: one per core, at most 4); half as many run searches",
    )
    command.set_defaults(run=_serve, function=None)


def _serve(args: argparse.Namespace, _: None) -> None:
    if not args.host:  # would be every address of this machine
        raise ValueError("--host must be a name or an address, got ''")
    check_integer("--port", args.port, 0, 65_535)
    if args.workers is not None:
        check_integer("--workers", args.workers, 1, 64)
    if args.models and not args.models.is_dir():
        raise ValueError(f"--models must be a folder that exists, got {str(args.models)!r}")
    try:
        from resgym.app.server import serve
    except ModuleNotFoundError as error:
        raise ValueError(f"{error.name} is needed and not installed: resgym[web]") from None

    def ready(address: str) -> None:
        print(f"resgym is at {address} (Ctrl-C ends it)", flush=True)

    serve(args.host, args.port, args.models, args.workers, ready)
