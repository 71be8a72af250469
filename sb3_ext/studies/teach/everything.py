"""From nothing to a player taught by the solver: dataset, training and measures in one command.

The folder --out gets data (the dataset), taught (the model, see the command train) and
results.json. The same command goes on where it was interrupted.

  python -m sb3_ext.teach run --config taught/host.yml --out runs/taught
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.checkpoints.checkpoint import list_checkpoints
from sb3_ext.config.registry import unknown_word
from sb3_ext.config.sections import (
    ConfigError,
    Count,
    Fraction,
    PositiveCount,
    Section,
    read_section,
)
from sb3_ext.studies.json_files import write_json
from sb3_ext.studies.teach.benchmark import (
    host_summary,
    host_test,
    measure_host,
    singularity_depths,
    singularity_summary,
)
from sb3_ext.studies.teach.families import read_teach_config
from sb3_ext.studies.teach.generate import Plan, prepared
from sb3_ext.studies.teach.train import (
    ENVIRONMENTS,
    accuracy_table,
    find_config,
    read_hyperparameters,
    read_settings,
    show_measurement,
    teach,
)
from sb3_ext.training.command_line import add_options
from sb3_ext.training.config_files import read_config

__all__ = ["HELP", "add_arguments", "run"]

HELP = "generate, train and measure: from nothing to a taught player"


class _Algorithm(Section):
    """The section ``algorithm``: a file in rl_zoo3's form."""

    file: str


class _Data(Section):
    """The section ``data``: see `Plan`, which checks the ranges."""

    config: str
    positions: PositiveCount = 100_000
    seat: str = "host"
    objective: str = "depth"
    held_out: Fraction = 0.05
    seed: Count = 0


class _Measure(Section):
    """The section ``measure``: see `host_test` and `measure_host`."""

    larger: Count = 300
    brieskorn_pham: Count = 9
    label_budget: PositiveCount = 300_000
    games: Count = 4000
    max_depth: PositiveCount = 40


_SECTIONS: dict[str, type[Section] | None] = {
    "algorithm": _Algorithm,
    "data": _Data,
    "measure": _Measure,
    "train": None,  # checked by the settings themselves
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--out", type=Path, required=True, help="the folder of everything")
    parser.add_argument(
        "--config",
        default="taught/host.yml",
        metavar="FILE",
        help="sections data, algorithm, train, measure (default taught/host.yml)",
    )
    parser.add_argument("--positions", type=int, help="instead of data.positions")
    parser.add_argument("--seed", type=int, help="of the data and of the training")
    add_options(parser, "--set", "--workers", "--threads", "--no-progress")


def run(args: argparse.Namespace, command: Sequence[str]) -> int:
    """Runs the command; see `sb3_ext.studies.teach.cli.main`."""
    sections = _read(args.config)
    settings = read_settings(args.config, args.settings, args.seed)
    wanted = sections["data"].model_dump()
    for key, value in (("positions", args.positions), ("seed", args.seed)):
        if value is not None:
            wanted[key] = value
    plan = Plan(read_teach_config(wanted.pop("config")), **wanted)
    hyperparameters = read_hyperparameters(sections["algorithm"].file, ENVIRONMENTS[plan.seat])
    out: Path = args.out
    bar = not args.no_progress and sys.stderr.isatty()
    seconds: dict[str, float] = {}

    begin = time.perf_counter()
    data = prepared(plan, out / "data", workers=args.workers, progress=bar, command=command)
    seconds["generate"] = time.perf_counter() - begin

    begin = time.perf_counter()
    taught = teach(
        data,
        out / "taught",
        hyperparameters,
        settings,
        resume=bool(list_checkpoints(out / "taught")),
        progress=bar,
        report=None if bar else show_measurement,
        command=command,
    )
    if taught is None:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 0
    model, held_out = taught
    seconds["train"] = time.perf_counter() - begin
    print(accuracy_table(held_out))

    results: dict[str, Any] = {"held_out": held_out}
    if plan.seat == "host" and plan.objective == "depth" and plan.config.dimension == 3:
        begin = time.perf_counter()
        wanted, host = sections["measure"], player_of(model, "taught")
        results["singularities"] = singularity_depths(host, wanted.max_depth)
        test = host_test(data.split("held_out"), plan, wanted.brieskorn_pham, wanted.label_budget)
        results["host"] = measure_host(
            host, test, larger=wanted.larger, games=wanted.games, max_depth=wanted.max_depth
        )
        seconds["measure"] = time.perf_counter() - begin
        print(
            singularity_summary(results["singularities"]), host_summary(results["host"]), sep="\n"
        )
    results["seconds"] = {name: round(value, 1) for name, value in seconds.items()}
    write_json(out / "results.json", results)
    print("seconds: " + ", ".join(f"{name} {value:.0f}" for name, value in seconds.items()))
    return 0


def _read(config: str | Path) -> dict[str, Any]:
    """The sections of a file, read and checked before anything long begins.

    Raises:
        ValueError: one line.
    """
    file = find_config(config)
    found = read_config(file)
    for name in found:
        if name not in _SECTIONS:
            raise ValueError(f"{file}: {unknown_word('section', name, _SECTIONS)}")
    for name in _SECTIONS:
        if name not in found:
            raise ValueError(f"{file}: the section {name} is missing")
    try:
        return {
            name: read_section(model, found[name], name)
            for name, model in _SECTIONS.items()
            if model is not None
        }
    except ConfigError as error:
        raise ValueError(f"{file}: {error}") from None
