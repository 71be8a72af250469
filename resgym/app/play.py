"""A game between a person and a player: in the terminal, with hints and scores from the solver."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TextIO

import torch

from resgym.game.exact import PLAIN_HOSTS, OrderedRule, Position, moved, reduced
from resgym.game.rng import RowRandom, Stream
from resgym.game.rules import start_positions
from resgym.game.spec import Axes, GameSpec, Point, Role, action_axes, check_integer
from resgym.measure.games import GameRecord
from resgym.players import ask_player
from resgym.players.asking import Seat
from resgym.players.registry import check_role
from resgym.polynomials.monomials import Exponents
from resgym.polynomials.parse import parse
from resgym.polynomials.starts import resolve_starts
from resgym.solver.search import Limits, prove
from resgym.solver.solve import solve
from resgym.texts import Data, Names, counted, format_axes, format_move, format_position

Move = tuple[Axes, int]
"""The host's set and the agent's axis."""


def episode_random(seed: int) -> RowRandom:
    """Return the random numbers of an environment's first episode after a reset with this seed."""
    return RowRandom.for_episode(torch.tensor([check_integer("seed", seed, 0, 2**63 - 1)]))


def other_seat(seat: str) -> Role | None:
    """Return the opponent's role for a person's seat; None if the person plays both."""
    roles: dict[str, Role] = {"host": "agent", "agent": "host"}
    return roles.get(seat)


class Match:
    """The positions and moves of a game; moves can be taken back.

    Args:
        start: the first position.
        seat: the person's: ``host``, ``agent``, or ``both``.
        opponent: the player in the other seat, see `resolve_player`.
        seed: seed of an opponent that draws random numbers.
        max_moves: number of moves after which the game is cut.

    Attributes:
        positions: one more than `moves`.
        opponent: the player in the other seat; None if the person has both.
    """

    def __init__(
        self, start: Exponents, seat: str, opponent: Any, seed: int = 0, max_moves: int = 200
    ) -> None:
        self._rule = OrderedRule(GameSpec(start.dimension))
        self._random, self._max_moves = episode_random(seed), max_moves
        self.positions = [self._rule.start(start)]
        self.moves: list[Move] = []
        self._overflowed = False
        role, points = other_seat(seat), Exponents(self.points, start.variables)
        self.opponent = Seat(opponent, role, points, ask=ask_player) if role else None

    @property
    def points(self) -> Position:
        """The current position."""
        return self.positions[-1]

    @property
    def ending(self) -> str | None:
        """Why the game is over: ``resolved``, ``cut`` or ``overflow``; None while it continues."""
        if self._overflowed:
            return "overflow"
        cut = "cut" if len(self.moves) >= self._max_moves else None
        return self._rule.ending(self.points) or cut

    def ask_host(self) -> Axes:
        """Return the set that the opponent chooses."""
        assert self.opponent
        rng = self._random.at(2 * len(self.moves), Stream.HOST)
        return self.opponent.host_sets([self.points], rng)[0]

    def ask_agent(self, axes: Axes) -> int:
        """Return the axis that the opponent answers."""
        assert self.opponent
        rng = self._random.at(2 * len(self.moves) + 1, Stream.AGENT)
        return self.opponent.agent_axes([self.points], [axes], rng)[0]

    def play(self, axes: Axes, axis: int) -> bool:
        """Play a legal move; return False if it would exceed 2^59, which ends the game."""
        after = self._rule.after(self.points, axes, axis)
        if after is None:
            self._overflowed = True
            return False
        self.moves.append((axes, axis))
        self.positions.append(after)
        return True

    def undo(self) -> bool:
        """Take back a move, if there is one."""
        if not self.moves:
            return False
        self.moves.pop()
        self.positions.pop()
        return True


HINT_SECONDS = 2.0
"""Seconds that the solver gets for one hint."""

MAX_POSITIONS = 200_000
"""Largest table of the solver for one hint, about 80 MB."""


def hint(points: Position, named: Axes, names: Names, seconds: float = HINT_SECONDS) -> str:
    """Return a best move of an unfinished position, or what could be proved about it.

    Args:
        points: the position.
        named: the host's set if the agent is to choose; empty if the host is to play.
        names: names of the axes.
        seconds: time limit of the solver.
    """
    if named:
        share, room = seconds / len(named), MAX_POSITIONS // len(named)
        found = {
            axis: solve(moved(points, named, axis), time_limit=share, max_positions=room)
            for axis in named
        }
        best = max(named, key=lambda axis: found[axis].lower_bound)  # the first of equal ones
        count = counted(found[best].lower_bound, "move")
        if all(solution.proved for solution in found.values()):
            return f"{names[best]} is best: the game can then last {count} more"
        return (
            f"{names[best]}, after which the game can last at least {count} more; there was not "
            "enough time to compare all axes"
        )
    solution = solve(list(points), time_limit=seconds, max_positions=MAX_POSITIONS)
    if solution.proved and solution.tree and solution.tree.root.axes:
        axes, most = solution.tree.root.axes, counted(solution.value, "move")
        return f"{format_axes(axes, names)} is best: the game then lasts at most {most}"
    axes = PLAIN_HOSTS["zeillinger"](points)
    return (
        f"{format_axes(axes, names)}, which is Zeillinger's choice; in {seconds:g} s the solver "
        f"could only prove that the host can be held up for at least "
        f"{counted(solution.lower_bound, 'move')}"
    )


REMEMBERED = 50_000
"""Number of proved depths that are kept."""

_DEPTHS: dict[Position, int] = {}


def score(match: Match, named: Axes = (), seconds: float = HINT_SECONDS) -> Data:
    """Compare the moves of a game with best play.

    Args:
        match: the game.
        named: a set that the host has chosen and the agent has not answered.
        seconds: time limit of the solver.

    Returns:
        ``par``: the least depth of the start. ``left``: the moves that remain under best play.
        ``costs``: for each move the number of moves by which the host's set made the game longer,
        and by which the agent's axis made it shorter. ``lost``: the sums of both. ``stalled``: the
        number of moves since ``left`` was last less than ever before. None is a number that was
        not proved in time.
    """
    limits = Limits(seconds, MAX_POSITIONS)

    def depth(points: Sequence[Point]) -> float:
        form = reduced(points)
        if form not in _DEPTHS and limits.seconds_left > 0:
            proof = prove(form, "depth", limits)
            if len(_DEPTHS) >= REMEMBERED:
                _DEPTHS.clear()
            if proof.settled:
                _DEPTHS[form] = proof.lower
        return _DEPTHS.get(form, math.inf)

    def longest(points: Position, axes: Axes) -> float:
        return max(depth(moved(points, axes, axis)) for axis in axes)

    # The last positions first: they are the easiest.
    steps = reversed([*zip(match.positions, match.moves, strict=False)])
    worst = [longest(points, axes) for points, (axes, _) in steps][::-1]
    depths = [depth(points) for points in reversed(match.positions)][::-1]
    costs = [
        (1 + most - before, most - after)
        for most, (before, after) in zip(worst, pairwise(depths), strict=True)
    ]
    stalled = len(costs) - depths.index(min(depths))
    return {
        "par": _finite(depths[0]),
        "left": _finite(1 + longest(match.points, named) if named else depths[-1]),
        "costs": [[*map(_finite, cost)] for cost in costs],
        "lost": [_finite(sum(seat)) for seat in zip(*costs, strict=True)] or [0, 0],
        "stalled": _finite(depths[-1]) and stalled,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
    position = parse(points)
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
        [*map(list, match.positions)],
        [axes for axes, _ in match.moves],
        [axis for _, axis in match.moves],
        match.ending == "resolved",
    )


class _Person:
    """The person at the terminal."""

    def __init__(
        self, role: Role, match: Match, names: Names, source: TextIO, target: TextIO
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
        sets = enumerate(action_axes(len(names)))
        choices: Mapping[int, Axes] = {axis: (axis,) for axis in named} or dict(sets)
        shown = (names[key] if named else format_axes(axes, names) for key, axes in choices.items())
        self.say("  ".join(map("{}) {}".format, choices, shown)))
        chosen = self._ask(choices, named)
        if chosen is None:
            self.say("a move is taken back" if match.undo() else "there is no move to take back")
            return
        axes, axis = (named, chosen[0]) if named else (chosen, match.ask_agent(chosen))
        if match.play(axes, axis):
            self.say(format_move(axes, axis, names))

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
            elif chosen := self._choice(text, choices):
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
