"""What a request may ask: its fields, checked and bounded before anything is computed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from resgym.game.spec import MAX_DIMENSION, Role, check_choice, check_integer

MAX_TEXT = 2_000
"""Characters of a polynomial."""

MAX_MOVES = 200
MAX_TERMS = 500
MAX_POINTS = 100
"""Monomials of a start that matter to the game, after at most `MAX_TERMS` typed ones."""

MAX_CHARTS = 400
"""Charts of a tree; beyond, its open branches are cut."""

SEATS = ("host", "agent", "both")
FORMS = ("json", "svg", "outline", "growing")
"""What a tree can be asked for as: data, or a picture in one of the layouts."""

_SET = rf"[0-{MAX_DIMENSION - 1}]{{2,{MAX_DIMENSION}}}"
_MOVE = re.compile(rf"({_SET})\.([0-{MAX_DIMENSION - 1}])")
_MODEL = "models/"


class Move(NamedTuple):
    """The host's set and the agent's axis."""

    axes: tuple[int, ...]
    axis: int

    def __str__(self) -> str:
        return f"{axes_code(self.axes)}.{self.axis}"


def axes_code(axes: tuple[int, ...]) -> str:
    """A set of axes as a link writes it: ``02``."""
    return "".join(map(str, axes))


@dataclass(frozen=True)
class Question:
    """A game as a link has it: everything that its replay needs.

    Attributes:
        start: what was typed: a polynomial, a name, exponents.
        seat: the person's: ``host``, ``agent``, or ``both``.
        opponent: who sits in the other seat, a registered name or ``models/<file>``.
        seed: for an opponent that draws.
        moves: those played.
        named: a set that the host has named and the agent has not answered; may be empty.
        host: who is the host of a tree.
        form: of a tree, one of `FORMS`.
    """

    start: str
    seat: str = "agent"
    opponent: str = "zeillinger"
    seed: int = 0
    moves: tuple[Move, ...] = ()
    named: tuple[int, ...] = ()
    host: str = "zeillinger"
    form: str = "json"

    @property
    def opponent_role(self) -> Role | None:
        """The seat of the opponent; None if the person has both."""
        roles: dict[str, Role] = {"host": "agent", "agent": "host"}
        return roles.get(self.seat)


def read_question(fields: Mapping[str, str]) -> Question:
    """The question of a request's fields.

    Raises:
        ValueError: a field is unknown, too long or has no such value; one line that names it.
    """
    known = set(Question.__dataclass_fields__)
    if unknown := sorted(set(fields) - known):
        raise ValueError(f"fields must be of {', '.join(sorted(known))}, got {unknown[0][:40]!r}")
    start = fields.get("start", "")
    if not len(start.strip()) >= 1 or len(start) > MAX_TEXT:
        raise ValueError(f"start must be a text of 1 to {MAX_TEXT} characters, got {len(start)}")
    seat = check_choice("seat", fields.get("seat", "agent")[:40], SEATS)
    default = "random" if seat == "host" else "zeillinger"
    return Question(
        start,
        seat,
        _player("opponent", fields.get("opponent") or default),
        check_integer("seed", _number("seed", fields.get("seed") or "0"), 0, 2**31 - 1),
        _moves(fields.get("moves", "")),
        _axes("named", fields["named"]) if fields.get("named") else (),
        _player("host", fields.get("host") or "zeillinger"),
        check_choice("form", fields.get("form", "json")[:40], FORMS),
    )


def model_name(player: str) -> str | None:
    """The file of a player that is a model of the named folder; None for a registered name."""
    return player.removeprefix(_MODEL) if player.startswith(_MODEL) else None


def _player(field: str, text: str) -> str:
    # Neither arguments nor module:name; a file is found in the listing of the folder or nowhere.
    if model_name(text) is None and not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,60}", text):
        raise ValueError(f"{field} must be a player's name or models/<file>, got {text[:60]!r}")
    return text


def _number(field: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text):
        raise ValueError(f"{field} must be a whole number, got {text[:40]!r}")
    return int(text)


def _axes(field: str, text: str) -> tuple[int, ...]:
    axes = tuple(map(int, text)) if re.fullmatch(_SET, text) else ()
    if not axes or list(axes) != sorted(set(axes)):
        raise ValueError(f"{field} must be axes in ascending order like 012, got {text[:40]!r}")
    return axes


def _moves(text: str) -> tuple[Move, ...]:
    if len(text) > MAX_MOVES * (MAX_DIMENSION + 3):
        raise ValueError(f"moves must be at most {MAX_MOVES}, got {len(text)} characters")
    found = []
    for each in text.split(",") if text else ():
        match = _MOVE.fullmatch(each)
        if match is None:
            raise ValueError(f"moves must be written like 012.0,01.1, got {each[:40]!r}")
        found.append(Move(_axes("moves", match[1]), int(match[2])))
    check_integer("number of moves", len(found), 0, MAX_MOVES)
    return tuple(found)
