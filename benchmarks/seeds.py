"""Tables of the scoreboard: one for each task, in which the seeds of a method are one row.

  python -m benchmarks.seeds scoreboard.json
  python -m benchmarks.seeds docs/scoreboard.json --page docs/scoreboard.md

Rows of the file are results of `resgym scoreboard add`. Those whose names end in ", seed N" are
seeds of one method: their mean is shown with the least and the greatest. A last table has the
interquartile mean (IQM) over tasks and seeds, which leaves out the lowest and the highest quarter.
Its 95 % interval is that of a bootstrap which draws seeds anew within each task (Agarwal et al.
2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice").
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.run import Parser
from resgym.benchmark import TASKS, Result
from resgym.scoreboard import read_rows
from resgym.texts import Rows, markdown_table

DETAILS = {
    "exploitability": ("exploitability", 2),
    "cut": ("over 200 moves", 0),
    "right": ("best moves", 3),
    "moves": ("moves a game", 1),
}
"""What a table shows beside the result, with its heading and digits; moves only where there is no
exploitability."""
BEGIN, END = "<!-- tables: python -m benchmarks.seeds -->\n", "<!-- end of the tables -->"


def iqm(given: ArrayLike) -> np.ndarray:
    """The mean of the middle half of the last axis; values on its edge count in part."""
    values = np.sort(given)
    place, number = np.arange(values.shape[-1]), values.shape[-1]
    weight = np.clip(np.minimum(place + 1, 0.75 * number) - np.maximum(place, 0.25 * number), 0, 1)
    found: np.ndarray = values @ weight / weight.sum()
    return found


def interval(
    scores: Mapping[str, Sequence[float]], draws: int = 10_000, seed: int = 0
) -> tuple[float, float, float]:
    """The IQM over all results of a player by task, its 95 % interval by bootstrap within tasks."""
    source, parts = np.random.default_rng(seed), [np.asarray(each) for each in scores.values()]
    drawn = [each[source.integers(len(each), size=(draws, len(each)))] for each in parts]
    low, high = np.quantile(iqm(np.concatenate(drawn, axis=1)), [0.025, 0.975])
    return float(iqm(np.concatenate(parts))), float(low), float(high)


def method(row: Result) -> str:
    """The name of a result without its seed."""
    return re.sub(r", seed \d+$", "", row.name)


def task_table(rows: Sequence[Result]) -> Rows:
    """The results of one task, the best first; the seeds of a method are one row."""
    found: dict[str, list[Result]] = defaultdict(list)
    for row in rows:
        found[method(row)].append(row)
    shown = [name for name in DETAILS if name in rows[0].details]
    shown = shown[:2] if shown[0] == "exploitability" else shown[:1]
    heading = ("player", "method", "result", *(DETAILS[name][0] for name in shown))
    best = sorted(found.items(), key=lambda item: -np.mean([row.value for row in item[1]]))
    cells = [
        (
            name.removesuffix(" (agent)"),
            _made(own),
            _result(own),
            *(
                f"{np.mean([row.details[each] for row in own]):.{DETAILS[each][1]}f}"
                for each in shown
            ),
        )
        for name, own in best
    ]
    return [heading, *cells]


def _made(rows: Sequence[Result]) -> str:
    parts = [rows[0].track or "?"]
    parts += [f"{rows[0].steps:,} steps"] if rows[0].steps else []
    if method(rows[0]) != rows[0].name:
        parts.append(f"{len(rows)} seed{'s'[: len(rows) - 1]}")
    return ", ".join(parts)


def _result(rows: Sequence[Result]) -> str:
    values = [row.value for row in rows]
    if len(values) == 1:
        return str(rows[0])
    return f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def overall(rows: Iterable[Result]) -> Rows:
    """The interquartile means over tasks of the players with seeds, the highest first."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if method(row) != row.name:
            found[method(row)][row.task].append(row.value)
    cells = [(*interval(scores), name, scores) for name, scores in found.items()]
    return [
        ("player", "tasks", "IQM (95 %)"),
        *(
            (name, str(len(scores)), f"{middle:.3f} ({low:.3f} to {high:.3f})")
            for middle, low, high, name, scores in sorted(cells, key=lambda cell: -cell[0])
        ),
    ]


def tables(rows: Sequence[Result]) -> Iterator[str]:
    """The text of the tables, task by task."""
    for task, (_, _, opponent, seat) in TASKS.items():
        if own := [row for row in rows if row.task == task]:
            against = "" if opponent.startswith("optimal") else f", against `{opponent}`"
            yield f"### {task}: {seat}s{against}\n\n{markdown_table(task_table(own))}\n"
    if len(summary := overall(rows)) > 1:
        yield f"### All tasks: players with several seeds\n\n{markdown_table(summary)}\n"


def with_tables(page: str, rows: Sequence[Result]) -> str:
    """A page with these tables in place of those between its two marks."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n" + "\n".join(tables(rows)) + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    parser = Parser(prog="benchmarks.seeds", description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, help="results, as scoreboard.json")
    parser.add_argument("--page", type=Path, help="a page whose tables are replaced")
    args = parser.parse_args()
    try:
        results = read_rows(args.file)
        if args.page:
            text = args.page.read_text(encoding="utf-8")
            args.page.write_text(with_tables(text, results), encoding="utf-8")
        else:
            print("\n".join(tables(results)))
    except (OSError, ValueError) as error:
        parser.error(str(error))
