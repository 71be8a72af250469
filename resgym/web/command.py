"""``resgym serve`` on the command line."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

ABOUT = """A page to play and explore in your browser: type a polynomial, see its Newton
polyhedron, play host or agent against any player, ask the solver, grow the resolution tree, look at
every chart with its equation and divisors, share a game by its link. The server keeps no game: the
link is all."""

EXAMPLES = """examples:
  resgym serve                                 http://127.0.0.1:8000/, for this machine alone
  resgym serve --port 8080 --models runs/best  also play the models of a folder
  resgym serve --import myplayers              also play what a module registers

Models are checkpoint folders, or .zip files of known classes: no file runs code here.
To let other machines in, name an address: --host 0.0.0.0 shows the page and the models' names to
everybody who can reach it."""


def add_serve(commands: Any) -> None:
    """Adds the command ``serve`` to those of the command line."""
    command = commands.add_parser(
        "serve",
        help="open a page to play and explore in a browser",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument
    add("--host", type=_host, default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    add("--port", type=_whole(0, 65_535), default=8000, help="0 takes any free one (default 8000)")
    add("--models", type=_folder, metavar="FOLDER", help="models that may be played are below it")
    text = "processes for moves (default: one a core, 4 at most); half as many more search"
    add("--workers", type=_whole(1, 64), help=text)
    command.set_defaults(run=_serve)


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


def _serve(args: argparse.Namespace) -> None:
    missing = [name for name in ("starlette", "uvicorn") if not importlib.util.find_spec(name)]
    if missing:
        raise ValueError(f"{missing[0]} is needed and not installed: resgym[web]")
    from resgym.web.server import serve

    def ready(address: str) -> None:
        print(f"resgym is at {address} (Ctrl-C ends it)", flush=True)

    serve(args.host, args.port, args.models, args.workers, ready)
