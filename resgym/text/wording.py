"""How a position is put into words, and how an answer is read from a reply.

A *message* is ``{"role": "system" | "user" | "assistant", "content": text}``, as chat models take
them, and a *chat* a list of messages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from resgym.game.actions import action_axes
from resgym.game.spec import Role
from resgym.polynomials.monomials import Point
from resgym.render.positions import AXIS_NAMES, format_axes, format_position

Message = dict[str, str]
Chat = list[Message]

_RULE = """\
Hironaka's polyhedral game is played on a finite set of points whose coordinates are whole numbers \
from 0 on, one for each of the axes {axes}. In every move the host names a set of two axes or \
more, and the agent answers with one axis of this set. On that axis the coordinate of every point \
becomes the sum of its coordinates on the axes of the set; the other coordinates stay. Then all \
points are dropped that are at least as large on every axis as another point. The game ends when \
one point is left.
"""
_GOALS: dict[Role, str] = {
    "host": "You are the host and want the game to end after as few moves as possible. Reason as "
    "you like, then name your set in a last line of its own, written like this:\nanswer: {x, y}",
    "agent": "You are the agent and want the game to last as long as possible. Reason as you like, "
    "then name one axis of the host's set in a last line of its own, written like this:\nanswer: x",
}
_ANSWER = re.compile(r"^[\W_]*answer[\W_]*?[:=](.*)$", re.IGNORECASE | re.MULTILINE)


class AnswerError(ValueError):
    """A reply that holds no legal answer; the message says to its writer what is wrong.

    Attributes:
        kind: ``unreadable``: no answer was found; ``illegal``: the rules do not allow it.
    """

    def __init__(self, kind: Literal["unreadable", "illegal"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


def chat_of(
    role: Role,
    points: Sequence[Point],
    coords: Sequence[int] | None = None,
    instructions: str | None = None,
) -> Chat:
    """The messages with which a player is asked: the rules, and one position.

    Args:
        role: whose turn it is.
        points: the position, tuples of D coordinates.
        coords: for an agent the axes of the host's set, 0..D-1.
        instructions: instead of the rules in the system message; None: as they are here.
    """
    if instructions is None:
        axes = ", ".join(AXIS_NAMES[: len(points[0])])
        instructions = _RULE.format(axes=axes) + _GOALS[role]
    return [
        {"role": "system", "content": instructions},
        {"role": "user", "content": format_position([*points], coords)},
    ]


def write_answer(axes: Sequence[int], role: Role) -> str:
    """What a player says to play a set (host) or a single axis (agent)."""
    return f"answer: {format_axes(axes) if role == 'host' else AXIS_NAMES[axes[0]]}"


def read_answer(
    reply: str, role: Role, dimension: int, coords: Sequence[int] | None = None
) -> tuple[int, ...]:
    """The axes that a reply names: the host's set in ascending order, or the agent's one axis.

    The last line that begins with ``answer:`` counts, in any case of letters and whatever signs
    stand around it; a reply of one line may do without the word.

    Args:
        reply: all that the player said.
        role: the player's seat.
        dimension: number of axes D.
        coords: the axes of the host's set, for an agent.

    Raises:
        AnswerError: there is no such line or it names no axes, or the rules do not allow them.
    """
    lines = _ANSWER.findall(reply) or ([reply.strip()] if "\n" not in reply.strip() else [])
    words = re.findall(r"[^\W_]+", lines[-1]) if lines else []
    example = write_answer((0, 1) if role == "host" else tuple(coords or (0,))[:1], role)
    if not words:
        raise AnswerError("unreadable", f"there must be a last line such as '{example}'")
    unknown = [word for word in words if word.lower() not in AXIS_NAMES or len(word) > 1]
    if unknown:
        raise AnswerError(
            "unreadable",
            f"the answer must be names of axes alone, such as '{example}', got {unknown[0][:40]!r}",
        )
    axes = tuple(sorted({AXIS_NAMES.index(word.lower()) for word in words}))
    allowed: Sequence[int] = range(dimension)
    if role == "agent":
        allowed = allowed if coords is None else coords
        legal = len(axes) == 1 and axes[0] in allowed
        need = f"one axis of {format_axes(allowed)}"
    else:
        legal = len(axes) >= 2 and axes[-1] < dimension
        need = f"two axes or more of {format_axes(allowed)}"
    if not legal:
        raise AnswerError("illegal", f"the answer must be {need}, got {format_axes(axes)}")
    return axes


def read_position(text: str) -> tuple[list[Point], tuple[int, ...]]:
    """The position in a user message, and the axes that the host named, none if it is to play."""
    header, *lines = text.splitlines()
    dimension = len(header.split())
    points = [tuple(int(word) for word in line.split()[:dimension]) for line in lines[:-1]]
    named = re.search(r"the host named \{(.*)\}$", lines[-1])
    words = named[1].split(", ") if named else []
    return points, tuple(AXIS_NAMES.index(word) for word in words)


def action_of(axes: tuple[int, ...], role: Role, dimension: int) -> int:
    """The number by which the games know an answer of `read_answer`."""
    return action_axes(dimension).index(axes) if role == "host" else axes[0]


def axes_of(action: int, role: Role, dimension: int) -> tuple[int, ...]:
    """The reverse of `action_of`."""
    return action_axes(dimension)[action] if role == "host" else (action,)
