"""The scoreboard of hosts: the exact worst case and rho against two agents, same starts for all.

``resgym scoreboard`` shows the hosts of the package and the rows of a file of your own.
``resgym scoreboard add MODEL`` measures a host and adds its row. See docs/scoreboard.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

import resgym
from resgym.files import output_file, write_file
from resgym.game.spec import GameSpec
from resgym.game.state import GameState
from resgym.measure.optimum import answers_alike, optimum
from resgym.measure.rho import RhoResult, rho_bounds, rho_starts
from resgym.measure.worst_case import STARTS_TOGETHER, worst_case_moves
from resgym.players import player_name, resolve_player
from resgym.tables import Rows, Table, markdown_table, percent, spread
from resgym.trust import regular_file

POINTS = (5, 20)
STARTS, SEED, MAX_MOVES, MAX_POSITIONS = 500, 0, 200, 20_000
HEADINGS = (
    *("host", "exact worst case", "share of optimum", "moves"),
    *("rho, choose_first", "share of optimum", "rho, random"),
)

_FOLDERS = (Path(__file__).parent, Path(__file__).parents[1] / "docs")  # of a wheel, of a checkout


@dataclass(frozen=True)
class Figure:
    """A measure as lower and upper bound; they are equal if every search ended.

    Attributes:
        rho: games finished per move.
        interval_95: 95 % interval of rho over random starts, around both bounds.
        moves: mean moves of a game; cut games count.
        share: rho as a share of the optimum on these starts; None if the optimum is unknown.
    """

    rho: tuple[float, float]
    interval_95: tuple[float, float]
    moves: tuple[float, float]
    share: tuple[float, float] | None

    @classmethod
    def of(
        cls, low: RhoResult, high: RhoResult, optimum: tuple[float, float] | None = None
    ) -> Figure:
        """Build a figure from two results; ``optimum``: least and greatest moves of all games."""
        rho, moves = (low.rho, high.rho), (high.mean_length, low.mean_length)
        share = optimum and (rho[0] * optimum[0] / low.games, rho[1] * optimum[1] / low.games)
        return cls(rho, (low.interval[0], high.interval[1]), moves, share)

    def cells(self) -> tuple[str, str, str]:
        """Format rho, the share and the moves."""
        known = self.rho[0] == self.rho[1]
        about = f" ± {self.interval_95[1] - self.rho[1]:.4f}" if known else ""
        share = "-" if self.share is None else percent(self.share)
        return spread(self.rho, 4) + about, share, spread(self.moves, 2)


@dataclass(frozen=True)
class Row:
    """The measurements of a host, with rule ``basic``, three axes and values 0..20.

    Attributes:
        host: name of the host.
        points: points of a start.
        starts: number of starts.
        seed: seed of the starts and of players that draw random numbers.
        starts_sha256: digest of the starts.
        version: version of this package.
        cut: starts from which an agent can prolong the game beyond 200 moves.
        given_up: starts whose search exceeded 20,000 positions.
        worst: longest games that an agent can force; None if the host draws random numbers or
            remembers earlier moves.
        choose_first: games against this agent.
        random: games against this agent; no optimum is known.
    """

    host: str
    points: int
    starts: int
    seed: int
    starts_sha256: str
    version: str
    cut: int
    given_up: int
    worst: Figure | None
    choose_first: Figure
    random: Figure

    def cells(self) -> tuple[str, ...]:
        """The row of a table with `HEADINGS`."""
        worst = self.worst.cells() if self.worst else ("-", "-", "-")
        return self.host, *worst, *self.choose_first.cells()[:2], self.random.cells()[0]


class Scoreboard(Table, list[Row]):
    """Rows that show themselves as one table."""

    def table_rows(self) -> Rows:
        """See `Table`; the second column has the points of a start."""
        rows = [(str(row.points), row.cells()) for row in self]
        return [(host, points, *cells) for points, (host, *cells) in (("points", HEADINGS), *rows)]


@lru_cache
def _starts(points: int, number: int) -> tuple[GameState, str]:
    """Return the starts and their digest."""
    starts = rho_starts(GameSpec(max_num_points=points), number, SEED)
    return starts, hashlib.sha256(json.dumps(starts.point_lists()).encode()).hexdigest()


@lru_cache
def _optima(points: int, number: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """The moves of optimal hosts in all games: with an optimal agent, and with ``choose_first``.

    Each is a lower and an upper bound of the moves of all games.
    """
    starts, spec = _starts(points, number)[0], GameSpec(max_num_points=points)
    solved = [resgym.solve(each) for each in starts.point_lists()]
    # What was not proved within its budget counts with its bounds.
    least = sum(each.lower_bound for each in solved)
    most = sum(each.upper_bound or MAX_MOVES for each in solved)
    found = optimum(resolve_player("choose_first", "agent"), starts, spec, MAX_MOVES)
    assert found is not None
    return (float(least), float(most)), (float(found.moves[0]), float(found.moves[1]))


def measure(host: Any, points: int, *, number: int = STARTS, name: str | None = None) -> Row:
    """Measure a host.

    Args:
        host: a player's name, a `Player`, a callable or a saved model's path.
        points: points of a start.
        number: number of starts; only rows with the same number can be compared.
        name: name in the table; by default the host's own.

    Raises:
        ValueError, TypeError: the host does not exist or cannot play these positions.
    """
    spec = GameSpec(max_num_points=points)
    player = resolve_player(host, "host", spec)
    starts, digest = _starts(points, number)
    least, with_first = _optima(points, number)
    cut, given_up, worst = 0, 0, None
    if answers_alike(player, starts):
        parts = [
            worst_case_moves(player, starts.select(part), spec, MAX_MOVES, MAX_POSITIONS)
            for part in torch.arange(number).split(STARTS_TOGETHER)
        ]
        moves, unsettled = map(torch.cat, zip(*parts, strict=True))
        cut, given_up = int((moves > MAX_MOVES).sum()), int(unsettled.sum())
        most = torch.full_like(moves, MAX_MOVES)
        worst = Figure.of(*rho_bounds(moves, unsettled, most, MAX_MOVES), least)
    game: dict[str, Any] = {"games": number, "seed": SEED, "max_moves": MAX_MOVES}
    first, drawn = (
        resgym.rho(player, agent, max_num_points=points, **game)
        for agent in ("choose_first", "random")
    )  # of the same seed, so from the same starts
    figures = worst, Figure.of(first, first, with_first), Figure.of(drawn, drawn)
    about = name or player_name(host), points, number, SEED, digest, resgym.__version__
    return Row(*about, cut, given_up, *figures)


def read_rows(path: Path) -> Scoreboard:
    """Read the rows of a file.

    Raises:
        ValueError: the file is not a scoreboard.
    """

    def figure(plain: dict[str, Any]) -> Figure:
        return Figure(**{key: part and tuple(map(float, part)) for key, part in plain.items()})

    try:
        rows = Scoreboard()
        for plain in json.loads(regular_file(path, "file").read_text(encoding="utf-8")):
            worst = plain["worst"] and figure(plain["worst"])
            others = {name: figure(plain[name]) for name in ("choose_first", "random")}
            rows.append(Row(**{**plain, "worst": worst, **others}))
        table(rows)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"file: {path} is not a scoreboard: {error!r:.200}") from error
    return rows


def shipped_rows() -> Scoreboard:
    """Return the rows of the shipped hosts."""
    files = [folder / "scoreboard.json" for folder in _FOLDERS]
    return next((read_rows(file) for file in files if file.is_file()), Scoreboard())


def merged(rows: Iterable[Row]) -> Scoreboard:
    """Keep the last row of each host, points and starts; sort, best first."""
    latest = {(row.host, row.points, row.starts_sha256): row for row in rows}
    return Scoreboard(
        sorted(latest.values(), key=lambda row: (row.points, -row.worst.rho[0] if row.worst else 1))
    )


def table(rows: Iterable[Row]) -> str:
    """Rows as Markdown."""
    return markdown_table([HEADINGS, *(row.cells() for row in rows)])


def run(args: argparse.Namespace) -> None:
    """Measure a host if asked to, then show the rows."""
    file = output_file(args.file, (".json",), "file")
    own = read_rows(file) if file.is_file() else Scoreboard()
    if args.action and (len(args.action) != 2 or args.action[0] != "add"):
        raise ValueError(f"action must be 'add MODEL', got {' '.join(args.action)!r}")
    if args.action:  # what cannot play is told before the work
        resolve_player(args.action[1], "host", GameSpec())
    for points in (args.points or POINTS) if args.action else ():
        print(f"measuring {args.name or args.action[1]}, {points} points", file=sys.stderr)
        own = merged([*own, measure(args.action[1], points, name=args.name)])
        write_file(file, json.dumps([asdict(row) for row in own], indent=1) + "\n")
    rows = merged([*shipped_rows(), *own])
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    for points in POINTS:
        print(f"{points} points\n\n{table(row for row in rows if row.points == points)}\n")
