"""``python -m sb3_ext curves``: learning curves of rho, of one run or several.

It reads the measurements that a run leaves in its folder: ``rho.json`` of `RhoEvaluation` (the
quickstart's too) or ``evaluations.jsonl`` of the two-player trainer. Bands are the 95 % interval of
each evaluation over its starts, where the run kept it.
Rewards in monitor files are drawn by ``rl_zoo3 plot_train``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from resgym.cli import OneLineParser
from resgym.files import parse_json, read_text
from resgym.pictures.plots import Curve, plot_curves, plot_file
from resgym.texts import short
from sb3_ext.runs.command import command
from sb3_ext.types import StrPath

FILES = ("rho.json", "evaluations.jsonl")
_NO_BAND = (math.nan, math.nan)


def history_curves(history: Sequence[Mapping[str, Any]]) -> list[Curve]:
    """One curve of rho per opponent, of `RhoEvaluation`'s entries.

    Entries of the two-player trainer have ``step`` and ``values`` in place of ``updates`` and
    ``rho``. There are bands where there is ``interval_95``.
    """
    found: dict[str, list[Any]] = {}
    for entry in history:
        bands = entry.get("interval_95", {})
        place = float(entry.get("updates", entry.get("step")))
        for name, value in entry.get("rho", entry.get("values", {})).items():
            band = tuple(bands.get(name, _NO_BAND))
            found.setdefault(name, []).append((place, float(value), band))
    curves = []
    for name, points in found.items():
        x, y, spans = map(list, zip(*points, strict=True))
        curves.append(Curve(short(name), x, y, spans if np.isfinite(spans).any() else []))
    return curves


def read_curves(folder: StrPath) -> list[Curve]:
    """The measurements in a run's folder, one curve per opponent or pair of players.

    A line that is only half written, by a run that continues or was killed, is left out.

    Raises:
        ValueError: it holds none that can be read.
    """
    history: list[Any] = []
    for name in FILES:
        if os.path.lexists(path := Path(folder, name)):
            text = read_text(path, "run")
            for part in [text] if name.endswith(".json") else text.splitlines():
                with suppress(ValueError):
                    found = parse_json(part)
                    history += found if isinstance(found, list) else [found]
    with suppress(AttributeError, TypeError, ValueError):  # of another form: there are none
        if curves := history_curves(history):
            return curves
    raise ValueError(
        f"run must be a folder with measurements in {' or '.join(FILES)}, got "
        f"{os.fspath(folder)!r:.200}"
    )


@command("curves")
def main(arguments: Sequence[str]) -> int:
    """Writes the plot; returns the exit code, see `sb3_ext.runs.command.command`."""
    parser = OneLineParser(
        prog="python -m sb3_ext curves",
        description="Draw the learning curves of runs: rho over updates.",
    )
    add = parser.add_argument
    add("runs", nargs="+", type=Path, metavar="RUN", help=f"folder with {' or '.join(FILES)}")
    add("--out", "-o", default="curves.png", help="file: .png, .svg or .pdf (default %(default)s)")
    args = parser.parse_args(arguments)
    target = plot_file(args.out, "out")
    several = len(args.runs) > 1
    curves = [
        replace(curve, label=f"{run}: {curve.label}") if several else curve
        for run in dict.fromkeys(args.runs)
        for curve in read_curves(run)
    ]
    plot_curves(curves, target, title="Games finished per move")
    print(f"written to {target}")
    return 0
