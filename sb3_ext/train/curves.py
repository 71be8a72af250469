"""``python -m sb3_ext curves``: how rho grew while players learned, of one run or of several.

It reads the measurements that a run leaves in its folder: ``rho.json`` of `RhoEvaluation` (the
quickstart's too) or ``evaluations.jsonl`` of the two-player trainer. Bands are the 95 % interval of
each evaluation over its starts, where the run kept it, or with ``--mean`` the range of the runs.
Rewards in monitor files are
shown by ``python -m sb3_ext plot_train``.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from resgym.cli import OneLineParser
from resgym.measure.plots import Curve, plot_curves, plot_file
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import FAILED

FILES = ("rho.json", "evaluations.jsonl")


def history_curves(history: Sequence[Mapping[str, Any]], share: bool = False) -> list[Curve]:
    """One curve per opponent, of `RhoEvaluation`'s entries: ``rho``, or its least ``share``.

    Entries of the two-player trainer have ``step`` and ``values`` in place of ``updates`` and
    ``rho``. Curves of rho have bands where there is ``interval_95``.
    """
    found: dict[str, list[tuple[float, float, tuple[float, float] | None]]] = {}
    for entry in history:
        values = entry.get("rho", entry.get("values", {}))
        if share:
            values = {name: low for name, (low, _) in entry.get("share", {}).items()}
        intervals = {} if share else entry.get("interval_95", {})
        place = float(entry.get("updates", entry.get("step")))
        for name, value in values.items():
            found.setdefault(name, []).append((place, float(value), intervals.get(name)))
    curves = []
    for name, points in found.items():
        x, y, ends = zip(*points, strict=True)
        band = [
            (math.nan, math.nan) if each is None else (float(each[0]), float(each[1]))
            for each in ends
        ]
        curves.append(Curve(name, list(x), list(y), band if any(ends) else []))
    return curves


def read_curves(folder: str | os.PathLike[str], share: bool = False) -> list[Curve]:
    """The measurements in a run's folder, one curve per opponent or pair of players.

    With ``share`` those of rho as a part of the optimum, the least that it can be. A line that is
    only half written, by a run that goes on or was killed, is left out.

    Raises:
        ValueError: it holds none that can be read.
    """
    history: list[Any] = []
    for name in FILES:
        with suppress(OSError):
            text = Path(folder, name).read_text(encoding="utf-8")
            for part in [text] if name.endswith(".json") else text.splitlines():
                with suppress(ValueError):
                    found = json.loads(part)
                    history += found if isinstance(found, list) else [found]
    curves: list[Curve] = []
    with suppress(AttributeError, TypeError, ValueError):  # of another form: there are none
        curves = history_curves(history, share)
    if not curves:
        raise ValueError(
            f"run must be a folder with {'shares of an optimum' if share else 'measurements'} in "
            f"{' or '.join(FILES)}, got {os.fspath(folder)!r} (rewards in monitor files: "
            "python -m sb3_ext plot_train)"
        )
    return curves


def _all_curves(runs: Sequence[Path], share: bool = False) -> list[Curve]:
    """Those of several runs begin with what tells their paths apart."""
    if len(runs) == 1:
        return read_curves(runs[0], share)
    above = os.path.commonpath([run.resolve().parent for run in runs])
    return [
        replace(curve, label=f"{run.resolve().relative_to(above).as_posix()}: {curve.label}")
        for run in runs
        for curve in read_curves(run, share)
    ]


def _mean_curves(runs: Sequence[Path], share: bool = False) -> list[Curve]:
    """The mean of the runs by name, where all were measured, with the band from least to largest.

    Raises:
        ValueError: there is no name or no place that all runs have.
    """
    found = [{curve.label: curve for curve in read_curves(run, share)} for run in runs]
    curves = []
    for name in found[0]:
        own = [dict(zip(each[name].x, each[name].y, strict=True)) for each in found if name in each]
        places = sorted(set.intersection(*map(set, own)))
        if len(own) == len(runs) and places:
            y = np.array([[values[place] for place in places] for values in own])
            band = list(zip(y.min(0).tolist(), y.max(0).tolist(), strict=True))
            curves.append(Curve(name, places, y.mean(0).tolist(), band))
    if not curves:
        raise ValueError("mean: the runs have no measurement of the same name at the same update")
    return curves


@command("curves", failed=FAILED)
def main(arguments: Sequence[str]) -> int:
    """Writes the plot; returns the exit code, see `sb3_ext.runs.command.command`."""
    parser = OneLineParser(
        prog="python -m sb3_ext curves", description="Learning curves of runs: rho over updates."
    )
    add, file = parser.add_argument, "file: .png, .svg or .pdf (default %(default)s)"
    add("runs", nargs="+", type=Path, metavar="RUN", help=f"folder with {' or '.join(FILES)}")
    add("--out", "-o", default="curves.png", help=file)
    add("--title", default="Games finished per move", help="above the plot")
    text = "rho as a part of what no host can surpass, where the run has measured that"
    add("--share", action="store_true", help=text)
    text = "runs that differ in their seeds: their mean, with a band from the least to the largest"
    add("--mean", action="store_true", help=text)
    args = parser.parse_args(arguments)
    target = plot_file(args.out, "out")
    about: dict[str, Any] = {}
    if args.share:
        about = {"levels": {"optimum": 1.0}, "ylabel": "share of the optimum"}
    if args.mean:
        about["band"] = f"mean of {len(args.runs)} runs; bands: least to largest"
    curves = (_mean_curves if args.mean else _all_curves)(args.runs, args.share)
    plot_curves(curves, target, title=args.title, **about)
    print(f"written to {target}")
    return 0
