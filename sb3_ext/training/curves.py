"""``python -m sb3_ext.curves``: how rho grew while players learned, of one run or of several.

It reads the measurements that a run leaves in its folder: ``rho.json`` of `RhoEvaluation` (the
quickstart's too) or ``evaluations.jsonl`` of the two-player trainer. Rewards in monitor files are
shown by ``python -m sb3_ext.plot_train``.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resgym.cli import OneLineParser
from resgym.measure.plots import Curve, plot_curves, plot_file
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import FAILED

FILES = ("rho.json", "evaluations.jsonl")


def history_curves(history: Sequence[Mapping[str, Any]], share: bool = False) -> list[Curve]:
    """One curve per opponent, of `RhoEvaluation`'s entries: ``rho``, or its least ``share``."""
    measured = [
        {name: low for name, (low, _) in entry.get("share", {}).items()} if share else entry["rho"]
        for entry in history
    ]
    return _by_name(
        [(entry["updates"], each) for entry, each in zip(history, measured, strict=True)]
    )


def read_curves(folder: str | os.PathLike[str], share: bool = False) -> list[Curve]:
    """The measurements in a run's folder, one curve per opponent or pair of players.

    With ``share`` those of rho as a part of the optimum, the least that it can be.

    Raises:
        ValueError: it holds neither, or one that cannot be read or holds no measurement.
    """
    path = next((Path(folder, name) for name in FILES if Path(folder, name).is_file()), None)
    if path is None:
        raise ValueError(
            f"run must be a folder with {' or '.join(FILES)}, got {os.fspath(folder)!r} (rewards "
            "in monitor files: python -m sb3_ext.plot_train)"
        )
    with errors_named(f"run: {path} holds no measurements that can be read", ValueError):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            curves = history_curves(json.loads(text), share)
        elif share:
            curves = []
        else:
            lines = [json.loads(line) for line in text.splitlines() if line.strip()]
            curves = _by_name([(line["step"], line["values"]) for line in lines])
    if not curves:
        raise ValueError(
            f"run: {path} holds no {'share of an optimum' if share else 'measurement yet'}"
        )
    return curves


def _by_name(entries: Sequence[tuple[Any, Mapping[str, Any]]]) -> list[Curve]:
    """A curve for each name, with gaps where an entry does not have it."""
    names = list(dict.fromkeys(name for _, values in entries for name in values))
    places = [float(place) for place, _ in entries]
    return [
        Curve(name, places, [float(values.get(name, math.nan)) for _, values in entries])
        for name in names
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
