"""The scoreboard: results of the benchmark's tasks, player by player.

``resgym scoreboard`` shows the players of the package and the results of a file of your own.
``resgym scoreboard add MODEL`` measures a player, ``resgym scoreboard check FILE`` those of a file
again. See docs/scoreboard.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from resgym.benchmark.tasks import TASKS, Result, evaluate, task_named
from resgym.files import output_file, parse_json, read_text, write_file
from resgym.texts import Rows, Table, printable, short, shown
from resgym.trust import check_data

_FILES = (  # of a wheel, of a checkout
    Path(__file__).with_name("scoreboard.json"),
    Path(__file__).parents[1] / "docs/scoreboard.json",
)


class Scoreboard(Table, list[Result]):
    """Results that show themselves as one table, task by task, the best first."""

    def table_rows(self) -> Rows:
        """See `Table`. Of several results of a player in a task the last one counts."""
        last = {(row.task, row.name): row for row in self}
        best = sorted(last.values(), key=lambda row: -row.value)
        cells = [
            (row.task, row.name, str(row)) for task in TASKS for row in best if row.task == task
        ]
        return [("task", "player", "result"), *cells]


def read_rows(path: Path) -> Scoreboard:
    """Read the results of a file.

    Raises:
        ValueError: the file is not a scoreboard, or cannot be read, see `resgym.files.opened`.
    """
    text = read_text(path, "file")
    try:
        plain = parse_json(text)
        rows = Scoreboard(Result(**each) for each in plain)
        str(rows)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"file: {path} is not a scoreboard: {error!r:.200}") from error
    check_data(plain, f"{path}: player")
    return rows


def write_rows(path: Path, rows: Iterable[Result]) -> None:
    """Write results, one a line."""
    lines = ",\n".join(json.dumps(asdict(row)) for row in rows)
    write_file(path, f"[\n{lines}\n]\n")


def shipped_rows() -> Scoreboard:
    """Return the results of the shipped players; those with a path are in the file alone."""
    rows = next((read_rows(file) for file in _FILES if file.is_file()), Scoreboard())
    return Scoreboard(row for row in rows if "/" not in row.player)


def check(row: Result) -> Result:
    """Measure a player again; the result is reproduced if the same counts come out."""
    again = evaluate(row.player, row.task)
    same = (again.counts, again.data_sha256) == (row.counts, row.data_sha256)
    return replace(row, reproduced=same)


def run(args: argparse.Namespace) -> None:
    """Measure players if asked to, then show the results."""
    action, *given = args.action or ["show"]
    if (action, len(given)) not in (("show", 0), ("add", 1), ("check", 1)):
        raise ValueError(
            f"action must be 'add MODEL' or 'check FILE', got {shown(' '.join(args.action))}"
        )
    tasks = args.task or TASKS
    for task in tasks:
        task_named(task)
    file = output_file(given[0] if action == "check" else args.file, (".json",), "file")
    own = read_rows(file) if file.is_file() or action == "check" else []
    if action == "check":
        own = [*map(check, own)]
        write_rows(file, own)
    about = {name: getattr(args, name) for name in ("name", "track", "steps")}
    for task in (args.task or ["worst-20"]) if action == "add" else ():
        print(f"measuring {short(args.name or given[0])}, {task}", file=sys.stderr)
        new = evaluate(given[0], task, **about)
        own = [*(row for row in own if (row.name, row.task) != (new.name, task)), new]
        write_rows(file, own)
    rows = Scoreboard(row for row in [*shipped_rows(), *own] if row.task in tasks)
    if args.json:
        print(json.dumps([*map(asdict, rows)], indent=1))
        return
    print(rows)
    for row in own:
        again = f", reproduced: {row.reproduced}" if action == "check" else ""
        print(f"\n{printable(row.name)}, {row.task}: {row}, {row.details}{again}")
    if action == "check" and not all(row.reproduced for row in own):
        raise SystemExit(1)
