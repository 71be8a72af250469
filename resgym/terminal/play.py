"""A game in the terminal: a person in one seat, a player in the other, and solver hints."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from resgym.game.rng import Stream
from resgym.game.rules import start_positions
from resgym.game.spec import Axes, GameSpec, Role, action_axes, check_integer
from resgym.players.base import check_role
from resgym.polynomials.monomials import Exponents
from resgym.polynomials.parse import as_position
from resgym.polynomials.starts import resolve_starts
from resgym.render.games import GameRecord, counted, format_axes, format_move, format_position
from resgym.terminal.hints import hint
from resgym.terminal.match import Match, episode_random

COMMANDS = {"u": "undo", "h": "hint", "q": "quit"}


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
        opponent: the other seat: a name, a `Player`, a callable or the path of a saved model; by
            default host ``zeillinger`` or agent ``random``.
        seed: seed of an opponent that draws random numbers.
        max_moves: number of moves after which the game is cut.
        source: answers are read from here, by default standard input. Its end ends the game.
        target: the game is shown here, by default standard output.

    Returns:
        The game as far as it was played, without moves that were taken back.

    Raises:
        ValueError, TypeError: an argument is out of range, or the start is finished.
    """
    check_role(seat, "seat")
    position = as_position(points)
    check_integer("max_moves", max_moves, 1)
    other = ("random" if seat == "host" else "zeillinger") if opponent is None else opponent
    match = Match(position, seat, other, seed, max_moves)
    if match.ending:
        raise ValueError(f"points must be an unfinished position, got {position}")
    person = _Person(seat, match, position.variables, source or sys.stdin, target or sys.stdout)
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
    person.say(f"\nafter {counted(len(match.moves), 'move')}:")
    person.say(str(Exponents(match.points, position.variables)))
    person.say(ended)
    return GameRecord(
        [list(each) for each in match.positions],
        [axes for axes, _ in match.moves],
        [axis for _, axis in match.moves],
        match.ending == "resolved",
    )


class _Person:
    """The person at the terminal."""

    def __init__(
        self, role: Role, match: Match, names: Sequence[str], source: TextIO, target: TextIO
    ) -> None:
        self.role, self.match, self.names = role, match, names
        self._source, self._target = source, target
        task = "two or more axes" if role == "host" else "an axis of the host's set"
        self.say(f"You are the {role}. Type {task} by name, or the number of the choice.")
        self.say(f"Also: {', '.join(f'{word} ({letter})' for letter, word in COMMANDS.items())}.")

    def say(self, text: str) -> None:
        print(text, file=self._target)

    def play(self) -> None:
        """Play one move, or take one back."""
        match, names = self.match, self.names
        named = () if self.role == "host" else match.ask_host()
        self.say(f"\nmove {len(match.moves) + 1}")
        self.say(format_position(list(match.points), named, names))
        choices: Mapping[int, Axes] = {axis: (axis,) for axis in named}
        choices = choices or dict(enumerate(action_axes(len(names))))
        self.say("  ".join(f"{key}) {self._shown(axes)}" for key, axes in choices.items()))
        chosen = self._ask(choices, named)
        if chosen is None:
            self.say("a move is taken back" if match.undo() else "there is no move to take back")
            return
        axes, axis = (named, chosen[0]) if named else (chosen, match.ask_agent(chosen))
        if match.play(axes, axis):
            self.say(format_move(axes, axis, names))

    def _shown(self, axes: Axes) -> str:
        return format_axes(axes, self.names) if self.role == "host" else self.names[axes[0]]

    def _ask(self, choices: Mapping[int, Axes], named: Axes) -> Axes | None:
        """Return what the person chooses, or None to take a move back; EOFError ends the game."""
        while True:
            print("choose: ", end="", file=self._target, flush=True)
            line = self._source.readline()
            if not self._source.isatty():
                # At the end of input the prompt has no line end.
                self.say(line.rstrip("\n"))
            if not line:
                raise EOFError("stopped: end of input")
            text = line.strip()
            # The name of a variable goes before the letter of a command.
            command = text if text in self.names else COMMANDS.get(text, text)
            if command == "quit":
                raise EOFError("stopped")
            if command == "undo":
                return None
            if command == "hint":
                self.say(f"hint: {hint(self.match.points, named, self.names)}")
            elif (chosen := self._choice(text, choices)) is not None:
                return chosen
            else:
                self.say(f"choose one of the above by its number or name, got {text[:40]!r}")

    def _choice(self, text: str, choices: Mapping[int, Axes]) -> Axes | None:
        """Return the choice that a line names, by number or by axes; None for none."""
        if text.isascii() and text.isdigit():
            return choices.get(int(text[:9]))
        words = text.strip("{}()").replace(",", " ").split()
        words = words if set(words) <= set(self.names) else list("".join(words))
        axes = tuple(axis for axis, name in enumerate(self.names) if name in words)
        return axes if set(words) <= set(self.names) and axes in choices.values() else None
