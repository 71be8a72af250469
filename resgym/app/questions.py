"""Requests: their fields, checked and bounded before anything is computed; the listed models."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from resgym.app.play import Move
from resgym.game.spec import Axes

DEPTH = 4
"""Number of folder levels that are searched."""

MAX_FOLDERS = 5_000
MAX_LISTED = 300
MANIFEST = "manifest.json"


def list_models(top: Path | None) -> dict[str, Path]:
    """Return the ``.zip`` files and checkpoint folders below a folder, by their relative paths.

    Links are not followed. Special files such as pipes are left out, and names that a link cannot
    contain, such as bytes that are not UTF-8.
    """
    if top is None:
        return {}
    found = []
    for folder, below, files in islice(os.walk(top), MAX_FOLDERS):
        here = Path(folder)
        deep = len(here.relative_to(top).parts) >= DEPTH
        below[:] = sorted(n for n in below if not (deep or n.startswith(".")) and n.isprintable())
        for name in sorted(files):
            path = here / name
            wanted = path.suffix == ".zip" or (name == MANIFEST and here != top)
            if wanted and name.isprintable() and path.is_file() and not path.is_symlink():
                found.append(here if name == MANIFEST else path)
    return {path.relative_to(top).as_posix(): path for path in found[:MAX_LISTED]}


MAX_TEXT = 2_000
"""Most characters of a polynomial."""

MAX_MOVES = 200
MAX_TERMS = 500
MAX_POINTS = 100
"""Most monomials of a start that matter to the game, of at most `MAX_TERMS` typed ones."""

MAX_CHARTS = 400
"""Most charts of a tree; open branches are cut there."""

MODELS = "models/"

_SET = "(?=[0-9]{2})0?1?2?3?4?5?6?7?8?9?"
_MOVE = rf"{_SET}\.[0-9]"
# No arguments and no module:name; a file must be in the listing of the folder.
_PLAYER = (rf"[A-Za-z][A-Za-z0-9_-]{{0,60}}|{MODELS}.+", "a player's name or models/<file>")

_FIELDS = {
    "start": (rf"(?s)(?=.*\S).{{1,{MAX_TEXT}}}", f"a text of 1 to {MAX_TEXT} characters"),
    "seat": ("host|agent|both", "host, agent or both"),
    "opponent": _PLAYER,
    "seed": ("[0-9]{1,10}", "a whole number of at most 10 digits"),
    "moves": (
        rf"({_MOVE}(,{_MOVE}){{0,{MAX_MOVES - 1}}})?",
        f"at most {MAX_MOVES} moves with axes in ascending order, like 012.0,01.1",
    ),
    "named": (rf"({_SET})?", "axes in ascending order, like 012"),
    "host": _PLAYER,
    "form": ("json|svg|invariants", "json, svg or invariants"),
}
"""The pattern of each field, and its description."""


class Question(NamedTuple):
    """A game as a link contains it: everything that a replay needs.

    Attributes:
        start: the typed text: a polynomial, a name, exponents.
        seat: the person's seat: ``host``, ``agent`` or ``both``.
        opponent: player of the other seat: a registered name or ``models/<file>``.
        seed: seed of an opponent that draws random numbers.
        moves: the moves so far.
        named: a set that the host has chosen and the agent has not answered; may be empty.
        host: host of a tree.
        form: form of a tree: data, a picture, or the rows of its invariants.
    """

    start: str
    seat: str
    opponent: str
    seed: int
    moves: tuple[Move, ...]
    named: Axes
    host: str
    form: str


def axes_code(axes: Axes) -> str:
    """Format a set of axes for a link: ``02``."""
    return "".join(map(str, axes))


def moves_code(moves: list[Move]) -> str:
    """Format moves for a link: ``012.0,01.1``."""
    return ",".join(f"{axes_code(axes)}.{axis}" for axes, axis in moves)


def read_question(fields: Mapping[str, str]) -> Question:
    """Return the question of a request's fields.

    Raises:
        ValueError: a field is unknown, too long or invalid; one line that names it.
    """
    if unknown := sorted(set(fields) - set(_FIELDS)):
        raise ValueError(f"fields must be of {', '.join(_FIELDS)}, got {unknown[0][:40]!r}")
    given: dict[str, Any] = {
        "seat": "agent",
        "opponent": "random" if fields.get("seat") == "host" else "zeillinger",
        "seed": "0",
        "host": "zeillinger",
        "form": "json",
        **{name: text for name, text in fields.items() if text},
    }
    for name, (pattern, allowed) in _FIELDS.items():
        text = given.setdefault(name, "")
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{name} must be {allowed}, got {text[:60]!r}")
    moves = [move.split(".") for move in given["moves"].split(",") if move]
    given |= {
        "seed": int(given["seed"]),
        "moves": tuple((_axes(axes), int(axis)) for axes, axis in moves),
        "named": _axes(given["named"]),
    }
    return Question(**given)


def _axes(code: str) -> Axes:
    return tuple(map(int, code))
