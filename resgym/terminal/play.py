"""A game in the terminal: a person in one seat, a player in the other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TextIO

import torch

from resgym.game.actions import action_axes, host_action_table
from resgym.game.rng import RowRandom, Stream
from resgym.game.spec import GameSpec, Role, check_integer
from resgym.game.state import GameState, state_from_points
from resgym.kernels import resolve_backend
from resgym.measure.games import GameRecord
from resgym.players import ask_player, resolve_player
from resgym.polynomials.monomials import Exponents
from resgym.polynomials.parse import as_position
from resgym.render.positions import format_axes, format_monomial, format_position
from resgym.terminal.hints import agent_hint, host_hint

__all__ = ["DEFAULT_OPPONENTS", "TerminalGame", "play", "random_position"]

DEFAULT_OPPONENTS: dict[Role, str] = {"host": "random", "agent": "zeillinger"}
"""Who plays against a person in a seat unless another opponent is named."""

DEFAULT_ROWS = 20
COMMANDS = {"u": "undo", "h": "hint", "q": "quit", "?": "help"}


def random_position(
    dimension: int = 3, max_num_points: int = 20, max_value: int = 20, seed: int = 0
) -> Exponents:
    """The start that an environment of these sizes draws when it is reset with this seed.

    Raises:
        ValueError, TypeError: a size or the seed is out of range.
    """
    from resgym.game.starts import random_starts

    spec = GameSpec(dimension, max_num_points, max_value)
    return Exponents(random_starts(spec, _random(seed).at(0, Stream.START)).point_lists()[0])


def _random(seed: int) -> RowRandom:
    zero = torch.zeros(1, dtype=torch.int64)
    return RowRandom.for_episode(zero + check_integer("seed", seed, 0, 2**63 - 1), zero)


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
    """Lets a person play one game.

    Args:
        points: the start, anything that `resgym.parse` reads, with at least two vertices.
        seat: the person's role.
        opponent: the other seat: a name, a `Player`, a callable or a saved model's path.
        seed: for an opponent that draws.
        max_moves: the game is cut after so many moves.
        source: where answers are read, standard input by default. Its end ends the game.
        target: where the game is shown, standard output by default.

    Returns:
        The game as far as it was played; moves that were taken back are not in it.

    Raises:
        ValueError, TypeError: an argument is out of range, or the start is over already.
    """
    return TerminalGame(
        points, seat, opponent, seed=seed, max_moves=max_moves, source=source, target=target
    ).run()


class TerminalGame:
    """See `play`, whose arguments it takes."""

    def __init__(
        self,
        points: Any,
        seat: Role = "agent",
        opponent: Any = None,
        *,
        seed: int = 0,
        max_moves: int = 200,
        source: TextIO | None = None,
        target: TextIO | None = None,
    ) -> None:
        if seat not in ("host", "agent"):
            raise ValueError(f"seat must be 'host' or 'agent', got {seat!r}")
        position = as_position(points)
        self.seat = seat
        self.names = position.variables
        self.max_moves = check_integer("max_moves", max_moves, 1)
        self.spec = GameSpec(position.dimension, max(DEFAULT_ROWS, len(position)))
        other: Role = "agent" if seat == "host" else "host"
        named = DEFAULT_OPPONENTS[seat] if opponent is None else opponent
        self.opponent = resolve_player(named, other, self.spec)
        self._kernels = resolve_backend("torch", torch.device("cpu"), self.spec)
        self._rng = _random(seed)
        self._source = sys.stdin if source is None else source
        self._target = sys.stdout if target is None else target
        start = state_from_points([list(point) for point in position], self.spec)
        if bool(start.finished()):
            (point,) = start.point_lists()[0]
            raise ValueError(
                "points must be an unfinished position, but only the vertex "
                f"{format_monomial(point, self.names)} is left at the start"
            )
        self.states: list[GameState] = [start]
        self.axes: list[tuple[int, ...]] = []
        self.axis: list[int] = []

    # The game.

    def run(self) -> GameRecord:
        """Plays until the game is over, is cut or left; see `play`."""
        self._say(f"You are the {self.seat}. {self._help()}")
        ended = ""
        while not ended:
            if bool(self.states[-1].finished()):
                ended = "one monomial is left: the game is over"
            elif len(self.axis) == self.max_moves:
                ended = f"cut after {self.max_moves} moves"
            else:
                ended = self._turn()
        record = self.record()
        self._say("\n" + self._summary(record))
        self._say(ended)
        return record

    def record(self) -> GameRecord:
        """The game so far."""
        return GameRecord(
            [state.point_lists()[0] for state in self.states],
            list(self.axes),
            list(self.axis),
            bool(self.states[-1].finished()),
        )

    def _turn(self) -> str:
        """One move; returns why the game ends, or nothing."""
        state, move = self.states[-1], len(self.axis)
        axes: tuple[int, ...] | None = None
        if self.seat == "agent":
            answer = ask_player(self.opponent, state, None, self._rng.at(2 * move, Stream.HOST))
            axes = action_axes(self.spec.dimension)[int(answer)]
        self._say(f"\nmove {move + 1}")
        self._say(format_position(state.point_lists()[0], axes, self.names))
        choice = self._ask(axes)
        if isinstance(choice, str):
            return choice
        if choice is None:
            return ""
        if axes is None:
            axes = choice
            answer = ask_player(
                self.opponent,
                state,
                self._coords(axes),
                self._rng.at(2 * move + 1, Stream.AGENT),
            )
            axis = int(answer)
        else:
            (axis,) = choice
        after, overflow = self._move(axes, axis)
        if bool(overflow):
            return "stopped: an exponent would pass 2^59"
        self.states.append(after)
        self.axes.append(axes)
        self.axis.append(axis)
        self._say(self._told(axes, axis))
        return ""

    def _coords(self, axes: tuple[int, ...]) -> torch.Tensor:
        number = action_axes(self.spec.dimension).index(axes)
        return host_action_table(self.spec.dimension)[number : number + 1]

    def _move(self, axes: tuple[int, ...], axis: int) -> tuple[GameState, torch.Tensor]:
        return self._kernels.move(
            self.states[-1], self._coords(axes), torch.tensor([axis]), self.spec
        )

    # The conversation.

    def _ask(self, axes: tuple[int, ...] | None) -> tuple[int, ...] | str | None:
        """The axes chosen; None after taking a move back; text when the game is left."""
        legal = action_axes(self.spec.dimension) if axes is None else [(axis,) for axis in axes]
        shown = [self._shown(choice) for choice in legal]
        self._say("  ".join(f"{number}) {text}" for number, text in enumerate(shown, 1)))
        while True:
            self._target.write("choose: ")
            self._target.flush()
            line = self._source.readline()
            if not self._source.isatty():
                # Nobody has typed the line end that a terminal shows.
                self._say(line.rstrip("\n"))
            if not line:
                return "stopped: end of input"
            text = line.strip()
            command = self._command(text)
            if command == "quit":
                return "stopped"
            if command == "undo":
                if self._undo():
                    return None
                self._say("there is no move to take back")
            elif command == "hint":
                self._say(self._hint(axes))
            elif command == "help":
                self._say(self._help())
            else:
                try:
                    return self._choice(text, legal)
                except ValueError as error:
                    self._say(str(error))

    def _command(self, text: str) -> str | None:
        """The command that a line means; a variable's name comes before a command's letter."""
        text = text.lower()
        if text in COMMANDS and text not in self.names:
            return COMMANDS[text]
        return text if text in COMMANDS.values() else None

    def _choice(self, text: str, legal: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The legal choice that a line means: its number, or names of axes.

        Raises:
            ValueError: it means none.
        """
        if text.isascii() and text.isdigit() and 1 <= int(text) <= len(legal):
            return legal[int(text) - 1]
        names = text.strip("{}()").replace(",", " ").split()
        if len(names) == 1 and names[0] not in self.names:
            names = list(names[0])
        if names and all(name in self.names for name in names):
            chosen = tuple(sorted({self.names.index(name) for name in names}))
            if chosen in legal:
                return chosen
        allowed = ", ".join(self._shown(choice) for choice in legal[:8])
        more = ", ..." if len(legal) > 8 else ""
        raise ValueError(
            f"choose one of {allowed}{more} or a number from 1 to {len(legal)}, got {text[:40]!r}"
        )

    def _undo(self) -> bool:
        if not self.axis:
            return False
        self.states.pop()
        self.axes.pop()
        self.axis.pop()
        self._say(f"move {len(self.axis) + 1} is taken back")
        return True

    def _hint(self, axes: tuple[int, ...] | None) -> str:
        if axes is None:
            return host_hint(self.states[-1], self.names)
        after = {axis: self._move(axes, axis)[0].point_lists()[0] for axis in axes}
        return agent_hint(after, self.names)

    # What is shown.

    def _say(self, text: str) -> None:
        print(text, file=self._target)

    def _help(self) -> str:
        example = " ".join(self.names[:2]) if self.seat == "host" else self.names[0]
        keys = [
            f"{word} ({letter})" if letter not in self.names else word
            for letter, word in COMMANDS.items()
        ]
        task = "Name two axes or more" if self.seat == "host" else "Choose an axis of the host's"
        return f"{task}, like {example}, or a number. Also: {', '.join(keys)}."

    def _shown(self, choice: Sequence[int]) -> str:
        return format_axes(choice, self.names) if self.seat == "host" else self.names[choice[0]]

    def _told(self, axes: tuple[int, ...], axis: int) -> str:
        total = " + ".join(self.names[each] for each in axes)
        return (
            f"host {format_axes(axes, self.names)}, agent {self.names[axis]}: "
            f"{self.names[axis]} becomes {total}"
        )

    def _summary(self, record: GameRecord) -> str:
        lines = []
        moves = zip(record.positions, record.axes, record.axis, strict=False)
        for number, (points, axes, axis) in enumerate(moves, 1):
            played = f"host {format_axes(axes, self.names)}, agent {self.names[axis]}"
            lines.append(f"{number}. {self._sum(points)}   {played}")
        number = len(record.axis)
        lines.append(f"after {number} {'move' if number == 1 else 'moves'}: "
                     f"{self._sum(record.positions[-1])}")  # fmt: skip
        return "\n".join(lines)

    def _sum(self, points: list[tuple[int, ...]]) -> str:
        return " + ".join(format_monomial(point, self.names) for point in points)
