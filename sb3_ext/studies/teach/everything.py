"""From nothing to a player taught by the solver: dataset, training and measures in one command.

The folder --out gets data (the dataset), taught (the model, see the command train) and
results.json. With rounds there are data-1, data-2, ... too, what the player of the training before
meets, and taught-0, taught-1, ... before the last. The same command goes on where it was
interrupted.

  python -m sb3_ext.teach run --config taught/host.yml --out runs/taught
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.checkpoints.checkpoint import list_checkpoints
from sb3_ext.ddqn.logs import Stopwatch
from sb3_ext.runs.command_line import add_options, starts_setting
from sb3_ext.runs.folder import RunFolder
from sb3_ext.runs.stopping import Ended, StopRules, read_stop_rules
from sb3_ext.studies.teach import measures, train
from sb3_ext.studies.teach.dataset import Dataset, joined
from sb3_ext.studies.teach.generate import prepared
from sb3_ext.studies.teach.settings import TaughtConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("--out", type=Path, required=True, help="the folder of everything")
    sections = "sections data, algorithm, train, measure (default %(default)s)"
    add("--config", default="taught/host.yml", metavar="FILE", help=sections)
    add("--positions", type=int, help="instead of data.positions")
    add("--seed", type=int, help="of the data and of the training")
    text = "draw the starts of the games that measure the player from this file"
    add("--starts", metavar="FILE", help=text)
    add_options(parser, "--set", "--stop", "--workers", "--actors", "--timeout-s")
    add_options(parser, "--threads", "--no-progress")


def run(args: argparse.Namespace, command: Sequence[str]) -> int:
    """Runs the command; see `sb3_ext.studies.teach.cli.main`."""
    known = ("max_updates", "max_seconds", "until")
    measured = ("accuracy", "choice", "loss", "seconds", "update", "value")
    rules = read_stop_rules(args.stop, known, [f"teach/{name}" for name in measured])
    try:
        return _run(args, command, rules)
    except Ended as ended:
        print(f"ends before the training: {ended}; the same command goes on from here")
        return 0


def _run(args: argparse.Namespace, command: Sequence[str], rules: StopRules | None) -> int:
    changes = list(args.settings)
    if args.positions is not None:
        changes.append(f"data.positions={args.positions}")
    if args.seed is not None:
        changes += [f"data.seed={args.seed}", f"train.seed={args.seed}"]
    changes += starts_setting(args.starts, "measure.starts")
    config = TaughtConfig.read(args.config, changes)
    plan = config.data
    hyperparameters = train.read_hyperparameters(
        config.algorithm.file, train.ENVIRONMENTS[plan.seat]
    )
    bar = not args.no_progress and sys.stderr.isatty()
    seconds = Stopwatch()
    with RunFolder(args.out) as folder:
        sets: list[Dataset] = []
        out: Path | None = None
        rounds = config.rounds.count if config.rounds else 0
        for number in range(rounds + 1):
            with seconds.timed("generate"):
                place = args.out / (f"data-{number}" if number else "data")
                plan_of_set = config.plan(number, out)
                check = (lambda: None) if rules is None else rules.check
                how = (args.workers, bar, command, args.actors, args.timeout_s, check)
                sets.append(prepared(plan_of_set, place, *how))
            with seconds.timed("train"):
                start, out = out, args.out / ("taught" if number == rounds else f"taught-{number}")
                data, going_on = joined(sets), bool(list_checkpoints(out))
                how_taught = (config.train, going_on, bar, not bar, command, start, rules)
                before = number * config.train.updates
                taught = train.teach(data, out, hyperparameters, *how_taught, before)
            if taught is None:
                print("stopped; the same command goes on from here", file=sys.stderr)
                return 0
            if rules is not None and rules.reason is not None:
                print(train.accuracy_table(taught[1]))
                ended = {"ended": rules.reason, "training": out.name}
                folder.write_json("results.json", {"held_out": taught[1], **ended})
                print(f"training ends: {rules.reason}; the same command goes on from here")
                return 0
        assert taught
        model, held_out = taught
        print(train.accuracy_table(held_out))
        results: dict[str, Any] = {"held_out": held_out}
        if plan.seat == "host" and plan.objective == "depth":
            wanted, host = config.measure, player_of(model, "taught")
            sizes = wanted.model_dump(include={"larger", "games", "max_depth", "starts"})
            with seconds.timed("measure"):
                if plan.config.dimension == 3:
                    singularities = measures.singularity_depths(host, wanted.max_depth)
                    results["singularities"] = singularities
                drawn = (wanted.brieskorn_pham, wanted.label_budget)
                test = measures.host_test(data.split("held_out"), plan, *drawn)
                measured = measures.measure_host(host, test, **sizes)
            results["host"] = measured
            if "singularities" in results:
                print(measures.singularity_summary(results["singularities"]))
            print(measures.host_summary(measured))
        elif plan.seat == "agent" and config.measure.games:
            agent, games = player_of(model, "taught"), config.measure.games
            with seconds.timed("measure"):
                held = measures.measure_agent(
                    agent,
                    games=games,
                    dimension=plan.config.dimension,
                    starts=config.measure.starts,
                )
            results["agent"] = held
            print(measures.agent_summary(held))
        rounded = {part: round(spent, 1) for part, spent in seconds.items()}
        folder.write_json("results.json", {**results, "seconds": rounded})
    print("seconds: " + ", ".join(f"{name} {value:.0f}" for name, value in seconds.items()))
    return 0
