"""From nothing to a player taught by the solver: dataset, training and measures in one command.

The folder --out gets data (the dataset), taught (the model, see the command train) and
results.json. The same command goes on where it was interrupted.

  python -m sb3_ext.teach run --config taught/host.yml --out runs/taught
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from sb3_ext.checkpoints.checkpoint import list_checkpoints
from sb3_ext.checkpoints.durable_files import write_text_durably
from sb3_ext.studies.teach.benchmark import host_results, host_summary
from sb3_ext.studies.teach.dataset import MANIFEST, load_dataset
from sb3_ext.studies.teach.families import read_teach_config
from sb3_ext.studies.teach.generate import Plan, check_plan, generate
from sb3_ext.studies.teach.settings import TaughtConfig
from sb3_ext.studies.teach.train import (
    ENVIRONMENTS,
    accuracy_table,
    read_hyperparameters,
    show_measurement,
    teach,
)

__all__ = ["HELP", "add_arguments", "run"]

HELP = "generate, train and measure: from nothing to a taught player"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--out", type=Path, required=True, help="the folder of everything")
    parser.add_argument(
        "--config",
        default="taught/host.yml",
        metavar="FILE",
        help="sections data, algorithm, train, measure (default taught/host.yml)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="changes",
        metavar="KEY=VALUE",
        help="another value for a setting of the training; may be repeated",
    )
    parser.add_argument("--positions", type=int, help="instead of data.positions")
    parser.add_argument("--seed", type=int, help="of the data and of the training")
    parser.add_argument("--workers", type=int, default=2, help="processes that label (default 2)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default 1)")
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")


def run(args: argparse.Namespace, command: Sequence[str]) -> int:
    """Runs the command; see `sb3_ext.studies.teach.cli.main`."""
    changes = [f"train.{change}" for change in args.changes]
    for key, value in (
        ("data.positions", args.positions),
        ("data.seed", args.seed),
        ("train.seed", args.seed),
    ):
        if value is not None:
            changes.append(f"{key}={value}")
    config = TaughtConfig.read(args.config, changes)
    wanted = config.data.to_dict()
    plan = Plan(read_teach_config(wanted.pop("config")), **wanted)
    check_plan(plan, args.workers)
    hyperparameters = read_hyperparameters(config.algorithm.file, ENVIRONMENTS[plan.seat])
    if args.threads < 1:
        raise ValueError(f"threads must be at least 1, got {args.threads}")
    torch.set_num_threads(args.threads)
    out: Path = args.out
    bar = not args.no_progress and sys.stderr.isatty()
    seconds: dict[str, float] = {}

    begin = time.perf_counter()
    if not (out / "data" / MANIFEST).is_file():
        generate(plan, out / "data", workers=args.workers, progress=bar, command=command)
    data = load_dataset(out / "data", dimension=plan.config.dimension, seat=plan.seat)
    seconds["generate"] = time.perf_counter() - begin

    begin = time.perf_counter()
    taught = teach(
        data,
        out / "taught",
        hyperparameters,
        config.train,
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
        results |= host_results(model, data, plan, **config.measure.to_dict())
        seconds["measure"] = time.perf_counter() - begin
        print(host_summary(results))
    results["seconds"] = {name: round(value, 1) for name, value in seconds.items()}
    write_text_durably(out / "results.json", json.dumps(results, indent=1) + "\n")
    print("seconds: " + ", ".join(f"{name} {value:.0f}" for name, value in seconds.items()))
    return 0
