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


def history_curves(history: Sequence[Mapping[str, Any]], share: bool = False) -> list[Curve]:
    """One curve per opponent, of `RhoEvaluation`'s entries: ``rho``, or its least ``share``."""
    measured = [
        {name: low for name, (low, _) in entry.get("share", {}).items()} if share else entry["rho"]
        for entry in history
    ]
    names = dict.fromkeys(name for values in measured for name in values)
    places = [float(entry["updates"]) for entry in history]
    return [
        Curve(name, places, [float(values.get(name, math.nan)) for values in measured])
        for name in names
    ]


def read_curves(folder: str | os.PathLike[str], share: bool = False) -> list[Curve]:
    """The measurements in a run's folder, one curve per opponent or pair of players.

    With ``share`` those of rho as a part of the optimum, the least that it can be.

    Raises:
        ValueError: it holds none that can be read.
    """
    kind = "share/" if share else "rho/"
    found = {
        name.removeprefix(kind): curve
        for name, curve in logged_curves(Path(folder), FILES).items()
        if name.startswith(kind)
    }
    if not found:
        raise ValueError(
            f"run must be a folder with {'shares of an optimum' if share else 'measurements'} in "
            f"{' or '.join(FILES)}, got {os.fspath(folder)!r} (rewards in monitor files: "
            "python -m sb3_ext.plot_train)"
        )
    return [
        Curve(
            name,
            [float(place) for place in curve["x"] if place is not None],
            [math.nan if value is None else value for value in curve["y"]],
        )
        for name, curve in found.items()
    ]


def _all_curves(runs: Sequence[Path], share: bool = False) -> list[Curve]:
    """Those of several runs begin with what tells their paths apart."""
    if len(runs) == 1:
        return read_curves(runs[0], share)
    above = os.path.commonpath([run.resolve().parent for run in runs])
    return [
        Curve(f"{run.resolve().relative_to(above).as_posix()}: {curve.label}", curve.x, curve.y)
        for run in runs
        for curve in read_curves(run, share)
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
    text = "rho as a part of what no host can surpass, where the run has measured that"
    add("--share", action="store_true", help=text)
    args = parser.parse_args(arguments)
    target = plot_file(args.out, "out")
    curves = _all_curves(args.runs, args.share)
    about: dict[str, Any] = {"levels": {"optimum": 1.0}, "ylabel": "share of the optimum"}
    plot_curves(curves, target, title=args.title, **(about if args.share else {}))
    print(f"written to {target}")
    return 0
