"""Runs of the command robust beside each other: a table as Markdown and a picture of margins.

python -m sb3_ext.teach compare runs/robust runs/without-teacher --out margins.svg
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resgym.measure.plots import Curve, plot_curves, plot_file
from resgym.tables import markdown_table
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.studies.teach.robust_evaluation import worst_margin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run that is finished")
    add("--out", metavar="FILE", help="picture: .png, .svg or .pdf")
    add(
        "--updates",
        type=int,
        help="the table has the version that would have been kept after so many updates, on the "
        "starts of that choice, for runs of different length (default: the results of the runs)",
    )


def run(args: argparse.Namespace, command: Sequence[str]) -> int:
    """Runs the command; see `sb3_ext.studies.teach.cli.main`."""
    target = None if args.out is None else plot_file(args.out, "out")
    found = [_read(folder) for folder in args.runs]
    opponents = list(found[0][0]["rho"])
    head = ["run", *opponents, "worst margin", "in the least depth", "deepest above it"]
    rows = [_row(opponents, results, history, args.updates) for results, history in found]
    print(markdown_table(head, rows))
    if target is not None:
        plot_curves(
            [
                Curve(
                    _name(results),
                    [float(entry["updates"]) for entry in history],
                    [worst_margin(entry["rho"], results["targets"]) for entry in history],
                )
                for results, history in found
            ],
            target,
            levels={"every goal reached": 1.0},
            ylabel="smallest rho / goal",
            title="Worst margin while the host learns",
        )
    return 0


def _row(
    opponents: Sequence[str],
    results: Mapping[str, Any],
    history: Sequence[Mapping[str, Any]],
    updates: int | None,
) -> list[str]:
    """The results that the command robust leaves, or what they were after so many updates."""
    deeper: list[Any]
    if updates is None:
        rho = {name: each["rho"] for name, each in results["rho"].items()}
        trees = results["singularities"].values()
        deeper = [None if t["depth"] is None else t["depth"] - t["least_depth"] for t in trees]
    else:
        measured = [entry for entry in history if entry["updates"] <= updates]
        if not measured:
            raise ValueError(f"updates: must be at least {history[0]['updates']}, got {updates}")
        best = max(measured, key=lambda entry: float(entry["score"]))
        rho, deeper = best["rho"], list(best["deeper"].values())
    return [
        _name(results),
        *(f"{rho[name]:.4f}" for name in opponents),
        f"{worst_margin(rho, results['targets']):.3f}",
        f"{deeper.count(0)} of {len(deeper)}",
        "not finished" if None in deeper else str(max(deeper)),
    ]


def _name(results: Mapping[str, Any]) -> str:
    left_out = results["without"]
    return f"without {' and '.join(left_out)}" if left_out else "everything"


def _read(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    found: list[Any] = []
    for name, keys in (
        ("results.json", {"rho", "singularities", "targets", "without"}),
        ("run/rho.json", {"deeper", "rho", "score", "updates"}),
    ):
        path = folder / name
        with errors_named(f"runs: {path} cannot be read", ValueError):
            data = json.loads(path.read_text(encoding="utf-8"))
        entries = data if isinstance(data, list) else [data]
        if not entries or not all(isinstance(e, dict) and keys <= e.keys() for e in entries):
            raise ValueError(f"runs: {path} is not of a finished run of the command robust")
        found.append(data)
    return found[0], found[1]
