"""``python -m sb3_ext curves``: learning curves of rho, of one run or several.

It reads the measurements that a run leaves in its folder: ``rho.json`` of `RhoEvaluation` (the
quickstart's too) or ``evaluations.jsonl`` of the two-player trainer. Bands are the 95 % interval of
each evaluation over its starts, where the run kept it.
Rewards in monitor files are drawn by ``rl_zoo3 plot_train``.
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

FILES = ("rho.json", "evaluations.jsonl")
_NO_BAND = (math.nan, math.nan)


def history_curves(history: Sequence[Mapping[str, Any]], share: bool = False) -> list[Curve]:
    """One curve per opponent, of `RhoEvaluation`'s entries: ``rho``, or its least ``share``.

    Entries of the two-player trainer have ``step`` and ``values`` in place of ``updates`` and
    ``rho``. Curves of rho have bands where there is ``interval_95``.
    """
    found: dict[str, list[tuple[float, float, tuple[float, float]]]] = {}
    for entry in history:
        values, bands = entry.get("rho", entry.get("values", {})), entry.get("interval_95", {})
        if share:
            values, bands = {name: low for name, (low, _) in entry.get("share", {}).items()}, {}
        for name, value in values.items():
            low, high = bands.get(name, _NO_BAND)
            place = float(entry.get("updates", entry.get("step")))
            found.setdefault(name, []).append((place, float(value), (float(low), float(high))))
    curves = []
    for name, points in found.items():
        x, y, bands = map(list, zip(*points, strict=True))
        curves.append(Curve(name, x, y, bands if np.isfinite(bands).any() else []))
    return curves


def read_curves(folder: str | os.PathLike[str], share: bool = False) -> list[Curve]:
    """The measurements in a run's folder, one curve per opponent or pair of players.

    With ``share`` those of rho as a part of the optimum, the least that it can be. A line that is
    only half written, by a run that continues or was killed, is left out.

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
        what = "shares of an optimum" if share else "measurements"
        raise ValueError(
            f"run must be a folder with {what} in {' or '.join(FILES)}, got {os.fspath(folder)!r}"
        )
    return curves


def curves_of(runs: Sequence[Path], share: bool = False) -> list[Curve]:
    """Those of several runs, whose labels begin with what tells their paths apart.

    Raises:
        ValueError: a folder has no measurements.
    """
    above = os.path.commonpath([run.resolve().parent for run in runs])
    return [
        replace(curve, label=f"{run.resolve().relative_to(above).as_posix()}: {curve.label}")
        if len(runs) > 1
        else curve
        for run in runs
        for curve in read_curves(run, share)
    ]


@command("curves")
def main(arguments: Sequence[str]) -> int:
    """Writes the plot; returns the exit code, see `sb3_ext.runs.command.command`."""
    parser = OneLineParser(
        prog="python -m sb3_ext curves", description="Learning curves of runs: rho over updates."
    )
    add, file = parser.add_argument, "file: .png, .svg or .pdf (default %(default)s)"
    add("runs", nargs="+", type=Path, metavar="RUN", help=f"folder with {' or '.join(FILES)}")
    add("--out", "-o", default="curves.png", help=file)
    add("--title", default="Games finished per move", help="title of the plot")
    text = "draw rho as a share of the optimum, if the run measured it"
    add("--share", action="store_true", help=text)
    args = parser.parse_args(arguments)
    target = plot_file(args.out, "out")
    about: dict[str, Any] = {}
    if args.share:
        about = {"levels": {"optimum": 1.0}, "ylabel": "share of the optimum"}
    plot_curves(curves_of(args.runs, args.share), target, title=args.title, **about)
    print(f"written to {target}")
    return 0
