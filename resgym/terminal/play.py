"""A game in the terminal: a person in one seat, a player in the other, and solver hints."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from resgym.game.actions import action_axes
from resgym.game.rng import Stream
from resgym.game.rules import start_positions
from resgym.game.spec import GameSpec, Role, check_integer
from resgym.players.base import check_role
from resgym.polynomials.monomials import Exponents, monomial_text
from resgym.polynomials.parse import as_position
from resgym.polynomials.starts import resolve_starts
from resgym.render.games import GameRecord
from resgym.render.positions import counted, format_axes, format_move, format_position
from resgym.terminal.hints import hint
from resgym.terminal.match import Match, episode_random

DEFAULT_OPPONENTS: dict[Role, str] = {"host": "random", "agent": "zeillinger"}
"""The default opponent of a person in each seat."""

COMMANDS = {"u": "undo", "h": "hint", "q": "quit", "?": "help"}


def random_position(
    dimension: int = 3,
    max_num_points: int = 20,
    max_value: int = 20,
    seed: int = 0,
    starts: Any = None,
) -> Exponents:
    """Return the start that an environment with these arguments draws at a reset with this seed."""
    spec = GameSpec(dimension, max_num_points, max_value)
    rng = episode_random(seed).at(0, Stream.START)
    return Exponents(start_positions(spec, rng, resolve_starts(starts, spec)).point_lists()[0])


def play(
    points: Any,
    seat: Role = "agent",
    opponent: Any = None,
    *,
    seed: int = 0,
    max_moves: int = 200,
    source: TextIO | None = None,
    target: TextIO | None = None,
) -> GameRecord:
    """Let a person play one game.

    Args:
        points: the start, anything that `resgym.parse` reads, with at least two vertices.
        seat: the person's role.
        opponent: the other seat: a name, a `Player`, a callable or the path of a saved model.
        seed: seed of an opponent that draws random numbers.
        max_moves: number of moves after which the game is cut.
        source: answers are read from here, by default standard input. Its end ends the game.
        target: the game is shown here, by default standard output.

    Returns:
        The game so far, without the moves that were taken back.

    Raises:
        ValueError, TypeError: an argument is out of range, or the start is already finished.
    """
    check_role(seat, "seat")
    position = as_position(points)
    check_integer("max_moves", max_moves, 1)
    named = DEFAULT_OPPONENTS[seat] if opponent is None else opponent
    match = Match(position, seat, named, seed, max_moves)
    if match.ending:
        raise ValueError(
            "points must be an unfinished position, but only the vertex "
            f"{monomial_text(match.points[0], position.variables)} is left at the start"
        )
    person = _Person(seat, match, position.variables, source or sys.stdin, target or sys.stdout)
    person.say(f"You are the {seat}. {person.help()}")
    try:
        while not match.ending:
            person.play()
        ended = {
            "resolved": "one monomial is left: the game is over",
            "cut": f"cut after {max_moves} moves",
            "overflow": "stopped: an exponent would pass 2^59",
        }[match.ending]
    except EOFError as why:
        ended = str(why)
    person.say("\n" + person.summary())
    person.say(ended)
    return GameRecord(
        [list(each) for each in match.positions],
        [axes for axes, _ in match.moves],
        [axis for _, axis in match.moves],
        match.ending == "resolved",
    )


class _Person:
    """A person at the terminal."""

    def __init__(
        self, role: Role, match: Match, names: Sequence[str], source: TextIO, target: TextIO
    ) -> None:
        self.role: Role = role
        self.match, self.names = match, names
        self._source, self._target = source, target

    def play(self) -> None:
        """Play one move, or take one back."""
        match, names = self.match, self.names
        axes = () if self.role == "host" else match.ask_host()
        self.say(f"\nmove {len(match.moves) + 1}")
        self.say(format_position(list(match.points), axes, names))
        legal: dict[int, tuple[int, ...]] = {axis: (axis,) for axis in axes}
        legal = legal or dict(enumerate(action_axes(len(names))))
        self.say("  ".join(self._numbered(legal)))
        chosen = self._ask(legal, axes)
        if chosen is None:
            self.say(f"move {len(match.moves) + 1} is taken back")
            return
        axes, axis = (axes, chosen[0]) if axes else (chosen, match.ask_agent(chosen))
        if match.play(axes, axis):
            self.say(format_move(axes, axis, names))

    def _ask(
        self, legal: Mapping[int, tuple[int, ...]], named: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        """Return the person's choice, or None after taking a move back; EOFError ends the game."""
        while True:
            print("choose: ", end="", file=self._target, flush=True)
            line = self._source.readline()
            if not self._source.isatty():
                # At the end of input the prompt has no line end.
                self.say(line.rstrip("\n"))
            if not line:
                raise EOFError("stopped: end of input")
            text = line.strip()
            command = self._command(text)
            if command == "quit":
                raise EOFError("stopped")
            if command == "undo":
                if self.match.undo():
                    return None
                self.say("there is no move to take back")
            elif command == "hint":
                self.say(f"hint: {hint(self.match.points, named, self.names)}")
            elif command == "help":
                self.say(self.help())
            elif (chosen := self._choice(text, legal)) is not None:
                return chosen
            else:
                numbered = self._numbered(legal)
                allowed = ", ".join(numbered[:8] + ["..."] * (len(numbered) > 8))
                self.say(f"choose one of {allowed} by its number or name, got {text[:40]!r}")

    def _command(self, text: str) -> str | None:
        """Return the command that a line means; variable names come before command letters."""
        text = text.lower()
        if text in COMMANDS and text not in self.names:
            return COMMANDS[text]
        return text if text in COMMANDS.values() else None

    def _choice(self, text: str, legal: Mapping[int, tuple[int, ...]]) -> tuple[int, ...] | None:
        """Return the legal choice that a line means, by number or by names, or None."""
        if text.isascii() and text.isdigit() and int(text[:9]) in legal:
            return legal[int(text[:9])]
        names = text.strip("{}()").replace(",", " ").split()
        if len(names) == 1 and names[0] not in self.names:
            names = list(names[0])
        if not set(names) <= set(self.names):
            return None
        chosen = tuple(sorted({self.names.index(name) for name in names}))
        return chosen if chosen in legal.values() else None

    def _numbered(self, legal: Mapping[int, tuple[int, ...]]) -> list[str]:
        return [f"{number}) {self._shown(choice)}" for number, choice in legal.items()]

    def _shown(self, choice: Sequence[int]) -> str:
        return format_axes(choice, self.names) if self.role == "host" else self.names[choice[0]]

    def say(self, text: str) -> None:
        print(text, file=self._target)

    def help(self) -> str:
        example = " ".join(self.names[:2]) if self.role == "host" else self.names[0]
        keys = [
            f"{word} ({letter})" if letter not in self.names else word
            for letter, word in COMMANDS.items()
        ]
        task = "two or more axes" if self.role == "host" else "an axis of the host's set"
        number = "or its number. The numbers are the action ids of the environments"
        return f"Type {task}, like {example}, {number}. Also: {', '.join(keys)}."

    def summary(self) -> str:
        """Show all moves and the position after each."""
        sums = [str(Exponents(points, self.names)) for points in self.match.positions]
        lines = [
            f"{number}. {total}   host {format_axes(axes, self.names)}, agent {self.names[axis]}"
            for number, (total, (axes, axis)) in enumerate(
                zip(sums, self.match.moves, strict=False), 1
            )
        ]
        return "\n".join([*lines, f"after {counted(len(lines), 'move')}: {sums[-1]}"])
