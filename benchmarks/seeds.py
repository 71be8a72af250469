"""Results of several seeds: means with their range, and the interquartile mean over tasks.

  python -m benchmarks.seeds scoreboard.json

Rows of the file are results of `resgym scoreboard add` whose names end in ", seed N". The
interquartile mean (IQM) over tasks and seeds leaves out the lowest and the highest quarter; its
95 % interval is that of a bootstrap which draws seeds anew within each task (Agarwal et al. 2021,
"Deep Reinforcement Learning at the Edge of the Statistical Precipice").
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.run import Parser
from resgym.scoreboard import read_rows
from resgym.texts import markdown_table


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


def table(file: Path) -> list[tuple[str, ...]]:
    """A row for each player, those with the highest IQM first."""
    found: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in read_rows(file):
        if name := re.fullmatch(r"(.+), seed (\d+)", row.name):
            found[name[1]][row.task][name[2]] = row.value
    tasks = list(dict.fromkeys(task for own in found.values() for task in own))
    rows = []
    for player, own in found.items():
        scores = {task: [*own[task].values()] for task in tasks if task in own}
        cells = [
            f"{np.mean(each):.3f} ({min(each):.3f} to {max(each):.3f}), {len(each)} seeds"
            if (each := scores.get(task))
            else "-"
            for task in tasks
        ]
        middle, low, high = interval(scores)
        rows.append((middle, (player, *cells, f"{middle:.3f} ({low:.3f} to {high:.3f})")))
    return [("player", *tasks, "IQM (95 %)"), *(row for _, row in sorted(rows, reverse=True))]


if __name__ == "__main__":
    parser = Parser(prog="benchmarks.seeds", description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, help="results, as scoreboard.json")
    try:
        print(markdown_table(table(parser.parse_args().file)))
    except (OSError, ValueError) as error:
        parser.error(str(error))
