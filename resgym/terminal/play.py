"""A game in the terminal: a person in one seat, a player in the other, and hints of the solver."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TextIO

import torch

from resgym.game.actions import action_axes
from resgym.game.plain import moved
from resgym.game.rng import RowRandom, Stream
from resgym.game.rules import start_positions
from resgym.game.spec import GameSpec, Role, check_integer
from resgym.game.state import GameState, state_from_points
from resgym.kernels import resolve_backend
from resgym.measure.games import play_move
from resgym.players import make_host, resolve_player
from resgym.players.base import check_role
from resgym.polynomials.monomials import Exponents, monomial_text
from resgym.polynomials.parse import as_position
from resgym.polynomials.starts import resolve_starts
from resgym.render.games import GameRecord
from resgym.render.positions import counted, format_axes, format_move, format_position
from resgym.solver.solve import solve

DEFAULT_OPPONENTS: dict[Role, str] = {"host": "random", "agent": "zeillinger"}
"""Who plays against a person in a seat unless another opponent is named."""

HINT_SECONDS = 2.0
"""Time that the solver gets for one hint."""

MAX_POSITIONS = 200_000
"""Largest table of the solver for one hint, about 80 MB."""

DEFAULT_ROWS = 20
COMMANDS = {"u": "undo", "h": "hint", "q": "quit", "?": "help"}


def random_position(
    dimension: int = 3,
    max_num_points: int = 20,
    max_value: int = 20,
    seed: int = 0,
    starts: Any = None,
) -> Exponents:
    """The start that an environment of these arguments draws when it is reset with this seed."""
    spec = GameSpec(dimension, max_num_points, max_value)
    rng = _random(seed).at(0, Stream.START)
    return Exponents(start_positions(spec, rng, resolve_starts(starts, spec)).point_lists()[0])


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
    check_role(seat, "seat")
    position = as_position(points)
    check_integer("max_moves", max_moves, 1)
    spec = GameSpec(position.dimension, max(DEFAULT_ROWS, len(position)))
    named = DEFAULT_OPPONENTS[seat] if opponent is None else opponent
    other = resolve_player(named, "agent" if seat == "host" else "host", spec)
    start = state_from_points([list(point) for point in position], spec)
    if bool(start.finished()):
        (point,) = start.point_lists()[0]
        raise ValueError(
            "points must be an unfinished position, but only the vertex "
            f"{monomial_text(point, position.variables)} is left at the start"
        )
    person = _Person(seat, start, position.variables, source or sys.stdin, target or sys.stdout)
    host, agent = (person, other) if seat == "host" else (other, person)
    kernels, rng = resolve_backend("torch", start.device, spec), _random(seed)
    person.say(f"You are the {seat}. {person.help()}")
    ended = ""
    while not ended:
        state, record = person.history[-1]
        played = len(record.axes)
        if record.finished:
            ended = "one monomial is left: the game is over"
        elif played == max_moves:
            ended = f"cut after {max_moves} moves"
        else:
            try:
                action, axis, after, overflow = play_move(
                    host, agent, state, spec, rng, played, kernels
                )
            except _NoAnswer as why:
                ended = str(why)
                continue
            if bool(overflow):
                ended = "stopped: an exponent would pass 2^59"
            else:
                axes = action_axes(spec.dimension)[int(action)]
                person.history.append((after, record.after(axes, int(axis), after)))
                person.say(format_move(axes, int(axis), person.names))
    person.say("\n" + person.summary())
    person.say(ended)
    return person.history[-1][1]


class _NoAnswer(Exception):
    """The person does not answer: why the game ends, or nothing after a move was taken back."""


class _Person:
    """A `Player` that asks at the terminal; its history is of every move that stands."""

    def __init__(
        self, role: Role, start: GameState, names: Sequence[str], source: TextIO, target: TextIO
    ) -> None:
        self.role: Role = role
        self.history = [(start, GameRecord(start.point_lists(), [], [], False))]
        self.names = names
        self._source = source
        self._target = target

    def act(self, state: GameState, coords: torch.Tensor | None, rng: RowRandom) -> torch.Tensor:
        """See `Player.act`; there is one game, and it may raise `_NoAnswer`."""
        axes = None if coords is None else tuple(coords[0].nonzero()[:, 0].tolist())
        self.say(f"\nmove {len(self.history)}")
        points = state.point_lists()[0]
        self.say(format_position(points, axes, self.names))
        legal: Sequence[tuple[int, ...]] = action_axes(len(self.names))
        hint = partial(host_hint, state, self.names)
        if axes is not None:
            legal = [(axis,) for axis in axes]
            after = {axis: moved(points, axes, axis) for axis in axes}
            hint = partial(agent_hint, after, self.names)
        numbers = range(len(legal)) if axes is None else axes
        actions = dict(zip(numbers, legal, strict=True))
        self.say("  ".join(f"{number}) {self._shown(each)}" for number, each in actions.items()))
        return torch.tensor([self._ask(actions, hint)])

    def _ask(self, actions: Mapping[int, tuple[int, ...]], hint: Callable[[], str]) -> int:
        """The action of the person, of those legal; commands are carried out before."""
        while True:
            print("choose: ", end="", file=self._target, flush=True)
            line = self._source.readline()
            if not self._source.isatty():
                # Nobody has typed the line end that a terminal shows.
                self.say(line.rstrip("\n"))
            if not line:
                raise _NoAnswer("stopped: end of input")
            text = line.strip()
            command = self._command(text)
            if command == "quit":
                raise _NoAnswer("stopped")
            if command == "undo" and len(self.history) > 1:
                self.history.pop()
                self.say(f"move {len(self.history)} is taken back")
                raise _NoAnswer
            if command == "undo":
                self.say("there is no move to take back")
            elif command == "hint":
                self.say(hint())
            elif command == "help":
                self.say(self.help())
            else:
                try:
                    return self._choice(text, actions)
                except ValueError as error:
                    self.say(str(error))

    def _command(self, text: str) -> str | None:
        """The command that a line means; a variable's name comes before a command's letter."""
        text = text.lower()
        if text in COMMANDS and text not in self.names:
            return COMMANDS[text]
        return text if text in COMMANDS.values() else None

    def _choice(self, text: str, actions: Mapping[int, tuple[int, ...]]) -> int:
        """The legal action that a line means, by number or by names; a ValueError for none."""
        if text.isascii() and text.isdigit() and int(text[:9]) in actions:
            return int(text[:9])
        names = text.strip("{}()").replace(",", " ").split()
        if len(names) == 1 and names[0] not in self.names:
            names = list(names[0])
        if names and all(name in self.names for name in names):
            chosen = tuple(sorted({self.names.index(name) for name in names}))
            for action, axes in actions.items():
                if chosen == axes:
                    return action
        legal = [f"{number}) {self._shown(axes)}" for number, axes in actions.items()]
        allowed = ", ".join(legal[:8] + ["..."] * (len(legal) > 8))
        raise ValueError(f"choose one of {allowed} by its number or name, got {text[:40]!r}")

    def say(self, text: str) -> None:
        print(text, file=self._target)

    def help(self) -> str:
        example = " ".join(self.names[:2]) if self.role == "host" else self.names[0]
        keys = [
            f"{word} ({letter})" if letter not in self.names else word
            for letter, word in COMMANDS.items()
        ]
        task = "two or more axes" if self.role == "host" else "an axis of the host's set"
        number = "or its number, which is the action id of the environments"
        return f"Type {task}, like {example}, {number}. Also: {', '.join(keys)}."

    def _shown(self, choice: Sequence[int]) -> str:
        return format_axes(choice, self.names) if self.role == "host" else self.names[choice[0]]

    def summary(self) -> str:
        """All moves that stand, and the position after them."""
        record = self.history[-1][1]
        sums = [str(Exponents(points, self.names)) for points in record.positions]
        lines = [
            f"{number}. {sums[number - 1]}   host {format_axes(axes, self.names)}, agent "
            f"{self.names[axis]}"
            for number, (axes, axis) in enumerate(zip(record.axes, record.axis, strict=True), 1)
        ]
        lines.append(f"after {counted(len(record.axis), 'move')}: {sums[-1]}")
        return "\n".join(lines)


def host_hint(
    state: GameState,
    names: Sequence[str],
    seconds: float = HINT_SECONDS,
    max_positions: int = MAX_POSITIONS,
) -> str:
    """A best set in one unfinished game, with the moves it needs; else Zeillinger's set."""
    solution = solve(state.point_lists()[0], time_limit=seconds, max_positions=max_positions)
    if solution.proved and solution.tree is not None and solution.tree.root.axes is not None:
        axes = format_axes(solution.tree.root.axes, names)
        most = counted(solution.value, "move")
        return f"hint: {axes} is best, the game then lasts at most {most}"
    rng = RowRandom(torch.zeros_like(state.count))
    action = int(make_host("zeillinger").act(state, None, rng))
    axes = format_axes(action_axes(state.points.shape[2])[action], names)
    return (
        f"hint: {axes}, as Zeillinger would play; the solver has proved in {seconds:g} s only that "
        f"the game can be made to last at least {counted(solution.lower_bound, 'move')}"
    )


def agent_hint(
    after: Mapping[int, list[tuple[int, ...]]],
    names: Sequence[str],
    seconds: float = HINT_SECONDS,
    max_positions: int = MAX_POSITIONS,
) -> str:
    """The axis after which a perfect host needs most moves, or what is proved about them.

    The solver's limits are for the positions ``after`` all legal axes together.
    """
    share, room = seconds / len(after), max_positions // len(after)
    found = {
        axis: solve(points, time_limit=share, max_positions=room) for axis, points in after.items()
    }
    best = max(found, key=lambda axis: (found[axis].lower_bound, -axis))
    bound, exact = found[best].lower_bound, found[best].proved
    told = all(solution.proved for axis, solution in found.items() if axis != best)
    if bound == 0 and exact and told:
        return "hint: every axis ends the game"
    count = f"{'' if exact else 'at least '}{counted(bound, 'move')}"
    if told:
        return f"hint: {names[best]} is best, the game can then last {count} more"
    return (
        f"hint: {names[best]}, after which the game can last {count} more; the solver had not the "
        "time to compare all axes"
    )
