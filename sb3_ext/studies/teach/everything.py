"""From nothing to a player taught by the solver: dataset, training and measures in one command.

The folder --out gets data (the dataset), taught (the model, see the command train) and
results.json. The same command goes on where it was interrupted.

  python -m sb3_ext.teach run --config taught/host.yml --out runs/taught
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.checkpoints.checkpoint import list_checkpoints
from sb3_ext.studies.json_files import write_json
from sb3_ext.studies.teach import benchmark, train
from sb3_ext.studies.teach.families import read_teach_config
from sb3_ext.studies.teach.generate import Plan, check_plan, prepared
from sb3_ext.studies.teach.settings import TaughtConfig
from sb3_ext.training.command_line import add_options

__all__ = ["add_arguments", "run"]


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
    changes = [f"train.{change}" for change in args.settings]
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
    hyperparameters = train.read_hyperparameters(
        config.algorithm.file, train.ENVIRONMENTS[plan.seat]
    )
    bar = not args.no_progress and sys.stderr.isatty()
    seconds: dict[str, float] = {}

    @contextmanager
    def timed(part: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        seconds[part] = round(time.perf_counter() - begin, 1)

    with timed("generate"):
        out = args.out / "data"
        data = prepared(plan, out, workers=args.workers, progress=bar, command=command)
    with timed("train"):
        out = args.out / "taught"
        resume = bool(list_checkpoints(out))
        taught = train.teach(
            data, out, hyperparameters, config.train, resume, bar, report=not bar, command=command
        )
    if taught is None:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 0
    model, held_out = taught
    print(train.accuracy_table(held_out))
    results: dict[str, Any] = {"held_out": held_out}
    if plan.seat == "host" and plan.objective == "depth" and plan.config.dimension == 3:
        wanted, host = config.measure.to_dict(), player_of(model, "taught")
        with timed("measure"):
            singularities = benchmark.singularity_depths(host, wanted["max_depth"])
            drawn = (wanted.pop(name) for name in ("brieskorn_pham", "label_budget"))
            test = benchmark.host_test(data.split("held_out"), plan, *drawn)
            measures = benchmark.measure_host(host, test, **wanted)
        results |= {"singularities": singularities, "host": measures}
        print(
            benchmark.singularity_summary(singularities), benchmark.host_summary(measures), sep="\n"
        )
    write_json(args.out / "results.json", {**results, "seconds": seconds})
    print("seconds: " + ", ".join(f"{name} {value:.0f}" for name, value in seconds.items()))
    return 0
