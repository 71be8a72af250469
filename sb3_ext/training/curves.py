"""``python -m sb3_ext.curves``: how rho grew while players learned, of one run or of several.

It reads the measurements that a run leaves in its folder: ``rho.json`` of `RhoEvaluation` (the
quickstart's too) or ``evaluations.jsonl`` of the two-player trainer. Rewards in monitor files are
shown by ``python -m sb3_ext.plot_train``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resgym.cli import OneLineParser
from resgym.measure.plots import Curve, plot_curves, plot_file
from resgym.web.runs import LOGS
from resgym.web.runs import read_curves as logged_curves
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import FAILED

FILES = LOGS[:2]


def history_curves(history: Sequence[Mapping[str, Any]]) -> list[Curve]:
    """One curve per opponent, of `RhoEvaluation`'s entries with ``updates`` and ``rho``."""
    names = dict.fromkeys(name for entry in history for name in entry["rho"])
    places = [float(entry["updates"]) for entry in history]
    return [
        Curve(name, places, [float(entry["rho"].get(name, math.nan)) for entry in history])
        for name in names
    ]


def read_curves(folder: str | os.PathLike[str]) -> list[Curve]:
    """The measurements in a run's folder, one curve per opponent or pair of players.

    Raises:
        ValueError: it holds none that can be read.
    """
    found = logged_curves(Path(folder), FILES)
    if not found:
        raise ValueError(
            f"run must be a folder with measurements in {' or '.join(FILES)}, got "
            f"{os.fspath(folder)!r} (rewards in monitor files: python -m sb3_ext.plot_train)"
        )
    return [
        Curve(
            name.removeprefix("rho/"),
            [float(place) for place in curve["x"] if place is not None],
            [math.nan if value is None else value for value in curve["y"]],
        )
        for name, curve in found.items()
    ]


def _all_curves(runs: Sequence[Path]) -> list[Curve]:
    """Those of several runs begin with what tells their paths apart."""
    if len(runs) == 1:
        return read_curves(runs[0])
    above = os.path.commonpath([run.resolve().parent for run in runs])
    return [
        Curve(f"{run.resolve().relative_to(above).as_posix()}: {curve.label}", curve.x, curve.y)
        for run in runs
        for curve in read_curves(run)
    ]


@command("curves", failed=FAILED)
def main(arguments: Sequence[str]) -> int:
    """Writes the plot; returns the exit code, see `sb3_ext.runs.command.command`."""
    parser = OneLineParser(
        prog="python -m sb3_ext.curves", description="Learning curves of runs: rho over updates."
    )
    add, file = parser.add_argument, "file: .png, .svg or .pdf (default %(default)s)"
    add("runs", nargs="+", type=Path, metavar="RUN", help=f"folder with {' or '.join(FILES)}")
    add("--out", "-o", default="curves.png", help=file)
    add("--title", default="Games finished per move", help="above the plot")
    args = parser.parse_args(arguments)
    target = plot_file(args.out, "out")
    plot_curves(_all_curves(args.runs), target, title=args.title)
    print(f"written to {target}")
    return 0
