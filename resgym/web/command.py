"""``resgym serve`` on the command line."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

ABOUT = """Play and explore in your browser: type a polynomial, see its Newton polyhedron,
play host or agent against any player, ask the solver, grow resolution trees, inspect charts with
their equations and divisors, and share a game by its link. The server keeps no games: the link
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
    add("--host", type=_host, default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    add(
        "--port",
        type=_whole(0, 65_535),
        default=8000,
        help="port; 0: any free one (default 8000)",
    )
    add(
        "--models",
        type=_folder,
        metavar="FOLDER",
        help="offer the models in this folder",
    )
    text = "processes for moves (default: one per core, at most 4), plus half as many for search"
    add("--workers", type=_whole(1, 64), help=text)
    command.set_defaults(run=_serve, function=None)


def _folder(text: str) -> Path:
    if not text or not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"must be a folder that exists, got {text!r}")
    return Path(text).resolve()


def _host(text: str) -> str:
    if not text:  # would be every address of this machine
        raise argparse.ArgumentTypeError("must be a name or an address, got ''")
    return text


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 9 and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"must be a number from {low} to {high}, got {text!r}")
        return int(text)

    return read


def _serve(args: argparse.Namespace, _: None) -> None:
    missing = [name for name in ("starlette", "uvicorn") if not importlib.util.find_spec(name)]
    if missing:
        raise ValueError(f"{missing[0]} is needed and not installed: resgym[web]")
    from resgym.web.server import serve

    def ready(address: str) -> None:
        print(f"resgym is at {address} (Ctrl-C ends it)", flush=True)

    serve(args.host, args.port, args.models, args.workers, ready)
