"""The scoreboard of hosts: the exact worst case and rho against two agents, same starts for all.

``resgym scoreboard`` shows the hosts of the package and the rows of a file of your own.
``resgym scoreboard add MODEL`` measures a host and adds its row. See docs/scoreboard.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
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
from resgym.tables import markdown_table, percent, spread, text_table
from resgym.trust import regular_file

POINTS = (5, 20)
STARTS, SEED, MAX_MOVES, MAX_POSITIONS = 500, 0, 200, 20_000
AGENTS = ("choose_first", "random")
HEADINGS = (
    *("host", "exact worst case", "share of optimum", "moves"),
    *("rho, choose_first", "share of optimum", "rho, random"),
)

_FOLDERS = (Path(__file__).parent, Path(__file__).parents[1] / "docs")  # of a wheel, of a checkout
_MARKED = re.compile(
    r"(<!-- scoreboard, (\d+) points(?:: ([^>\n]*))? -->\n).*?(<!-- end of scoreboard -->)", re.S
)


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

    @classmethod
    def read(cls, plain: dict[str, Any]) -> Row:
        """Build a row from plain data.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: the data are not a row.
        """
        figures = {}
        for name in ("worst", *AGENTS):
            if plain[name] is not None or name != "worst":
                parts = {key: part and tuple(map(float, part)) for key, part in plain[name].items()}
                figures[name] = Figure(**parts)
                figures[name].cells()
        row = cls(**{**plain, **figures})
        for field in fields(cls):
            if (
                field.type in ("int", "str")
                and type(getattr(row, field.name)).__name__ != field.type
            ):
                raise TypeError(f"{field.name} must be {field.type}")
        return row


@lru_cache
def _starts(points: int, number: int) -> tuple[GameState, str]:
    """Return the starts and their digest."""
    starts = rho_starts(GameSpec(max_num_points=points), number, SEED)
    return starts, hashlib.sha256(json.dumps(starts.point_lists()).encode()).hexdigest()


@lru_cache
def optima(points: int, number: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the moves of best play against an optimal agent and against ``choose_first``.

    Each is a lower and an upper bound of the moves of all games.
    """
    solved = [resgym.solve(each) for each in _starts(points, number)[0].point_lists()]
    least = torch.tensor([int(each.lower_bound) for each in solved])
    # Starts that were not proved within the budget contribute their bounds.
    most = torch.tensor([int(each.upper_bound or MAX_MOVES) for each in solved])
    agent, spec = resolve_player("choose_first", "agent"), GameSpec(max_num_points=points)
    found = optimum(agent, _starts(points, number)[0], spec, MAX_MOVES)
    assert found is not None
    shortest, longest = map(float, found.moves)
    return (float(least.sum()), float(most.sum())), (shortest, longest)


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
    cut = given_up = 0
    worst = None
    alike = answers_alike(player, starts)
    least, with_first = optima(points, number)
    if alike:
        limits = MAX_MOVES, MAX_POSITIONS
        parts = [
            worst_case_moves(player, starts.select(part), spec, *limits)
            for part in torch.arange(number).split(STARTS_TOGETHER)
        ]
        moves, unsettled = map(torch.cat, zip(*parts, strict=True))
        cut, given_up = int((moves > MAX_MOVES).sum()), int(unsettled.sum())
        most = torch.full_like(moves, MAX_MOVES)
        worst = Figure.of(*rho_bounds(moves, unsettled, most, MAX_MOVES), least)
    game: dict[str, Any] = {"games": number, "seed": SEED, "max_moves": MAX_MOVES}
    first, drawn = (
        resgym.rho(player, agent, max_num_points=points, **game) for agent in AGENTS
    )  # of the same seed, so from the same starts
    figures = worst, Figure.of(first, first, with_first), Figure.of(drawn, drawn)
    about = name or player_name(host), points, number, SEED, digest, resgym.__version__
    return Row(*about, cut, given_up, *figures)


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a file.

    Raises:
        ValueError: the file is not a scoreboard.
    """
    try:
        rows = json.loads(regular_file(path, "file").read_text(encoding="utf-8"))
        if not isinstance(rows, list):
            raise TypeError("must be a list")
        return [Row.read(row) for row in rows]
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"file: {path} is not a scoreboard: {error!r:.200}") from error


def shipped_rows() -> list[Row]:
    """Return the rows of the shipped hosts."""
    files = [folder / "scoreboard.json" for folder in _FOLDERS]
    return next((read_rows(file) for file in files if file.is_file()), [])


def merged(rows: Iterable[Row]) -> list[Row]:
    """Keep the last row of each host, points and starts; sort, best first."""
    latest = {(row.host, row.points, row.starts_sha256): row for row in rows}
    return sorted(
        latest.values(), key=lambda row: (row.points, -row.worst.rho[0] if row.worst else 1.0)
    )


def _cells(row: Row) -> tuple[str, ...]:
    worst = row.worst.cells() if row.worst else ("-", "-", "-")
    return (row.host, *worst, *row.choose_first.cells()[:2], row.random.cells()[0])


def table(rows: Iterable[Row]) -> str:
    """Format rows as Markdown."""
    return markdown_table(HEADINGS, map(_cells, rows))


def filled(page: str, rows: Sequence[Row]) -> str:
    """Return the page with its tables, each between two markers, replaced by these rows.

    A marker may list hosts: with ``20 points: optimal, taught`` only these are shown.
    """

    def marked(marks: re.Match[str]) -> str:
        some = [row for row in rows if row.points == int(marks[2])]
        if marks[3]:
            some = [row for row in some if row.host in marks[3].split(", ")]
        return f"{marks[1]}{table(some)}\n{marks[4]}"

    return _MARKED.sub(marked, page)


def run(args: argparse.Namespace) -> None:
    """Measure a host if asked to, then show the rows."""
    file = output_file(args.file, (".json",), "file")
    own = _own_rows(file)
    for page in args.page:  # fail before the work
        _marked_text(page)
    if args.action:
        resolve_player(args.model, "host", GameSpec())
        for points in args.points or POINTS:
            print(f"measuring {args.name or args.model}, {points} points", file=sys.stderr)
            row = measure(args.model, points, name=args.name)
            # Read again: another process may have added a row.
            own = merged([*_own_rows(file), row])
            write_file(file, json.dumps([asdict(row) for row in own], indent=1) + "\n")
    rows = merged([*shipped_rows(), *own])
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        for points in POINTS:
            some = [_cells(row) for row in rows if row.points == points]
            print(f"{points} points\n{text_table([HEADINGS, *some])}\n")
    for page in args.page:
        write_file(page, filled(_marked_text(page), rows))


def _own_rows(file: Path) -> list[Row]:
    return read_rows(file) if file.is_file() else []


def _marked_text(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    if not _MARKED.search(text):
        raise ValueError(f"page: there is no '<!-- scoreboard, 5 points -->' in {page}")
    return text
