"""A host that holds against several opponents at once: reinforcement with the teacher beside it.

The folder --out gets data (the dataset, unless --data names one), run (checkpoints, rho.json, the
best version so far as best and best_model.zip), results.json and curve.svg. The same command goes
on where it was interrupted.

  python -m sb3_ext.teach robust --out runs/robust
  python -m sb3_ext.teach robust --out runs/without --data runs/robust/data --without teacher
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

import resgym
from resgym.measure.plots import plot_curves
from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.checkpoints.checkpoint import list_checkpoints
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.config.yaml_files import read_yaml
from sb3_ext.replay.buffers import reserve_memory
from sb3_ext.runs.command_line import add_options
from sb3_ext.runs.folder import RunFolder
from sb3_ext.runs.provenance import provenance
from sb3_ext.schedules.frequency import Every
from sb3_ext.studies.teach import measures
from sb3_ext.studies.teach.dataset import Dataset, load_dataset
from sb3_ext.studies.teach.generate import Plan, prepared
from sb3_ext.studies.teach.pretraining import difference
from sb3_ext.studies.teach.reinforcement import Teacher
from sb3_ext.studies.teach.robust_evaluation import MAX_DEPTH, RobustEvaluation, worst_margin
from sb3_ext.studies.teach.settings import PARTS, RobustConfig, read_robust_config
from sb3_ext.studies.teach.train import ENVIRONMENTS, build_model, read_hyperparameters
from sb3_ext.training.curves import history_curves
from sb3_ext.training.loading import load_policy
from sb3_ext.training.runs import attach, transitions_for

CONFIG = "taught/robust.yml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("--out", type=Path, required=True, help="the folder of everything")
    add("--config", default=CONFIG, metavar="FILE", help="all settings (default %(default)s)")
    add("--data", type=Path, help="a dataset's folder, instead of making one")
    add(
        "--opponent",
        action="append",
        default=[],
        dest="opponents",
        metavar="PLAYER=WEIGHT",
        help="one more opponent, such as a responder that an attack found; may be repeated",
    )
    text = (
        "leave a part out, to see what it is good for; without the mixture the first "
        "opponent is the only one, and there is no mirror, which needs a mixture; without "
        "augmentation there is no mirror and the teacher renames no axes; may be repeated"
    )
    add("--without", action="append", default=[], choices=PARTS, help=text)
    add("--init-from", type=Path, metavar="RUN", help="begin with these networks")
    add("--seed", type=int, help="instead of algorithm.seed")
    add_options(parser, "--set", "--workers", "--threads", "--no-progress")


def run(args: argparse.Namespace, command: Sequence[str]) -> int:
    """Runs the command; see `sb3_ext.studies.teach.cli.main`."""
    changes = args.settings + ([] if args.seed is None else [f"algorithm.seed={args.seed}"])
    config = read_robust_config(args.config, changes, args.opponents, args.without)
    hyperparameters = read_hyperparameters(config.algorithm.file, ENVIRONMENTS["host"])
    if not {"augmentation", "mixture"}.isdisjoint(args.without):
        # One opponent alone tells mirror images apart.
        hyperparameters.get("policy_kwargs", {}).pop("mirror", None)
    keywords = hyperparameters.get("env_kwargs", {})
    hyperparameters["env_kwargs"] = {**keywords, "opponent": dict(config.opponents)}
    own, wanted = config.algorithm, config.evaluation
    num_envs = int(hyperparameters.get("n_envs", 1))
    model, _ = build_model(ENVIRONMENTS["host"], hyperparameters, 3, own.seed, num_envs)
    reserve_memory(model)
    out, run_dir = args.out, args.out / "run"
    every = own.checkpoint_updates or own.updates
    going_on = bool(list_checkpoints(run_dir))
    bar = not args.no_progress and sys.stderr.isatty()
    data: Dataset | None = None
    if "teacher" not in args.without and args.data is not None:
        data = load_dataset(args.data, dimension=3, seat="host")
    elif "teacher" not in args.without:
        plan = Plan.read(config.data.to_dict())
        data = prepared(plan, out / "data", args.workers, bar, command)
    evaluation = RobustEvaluation(
        every=Every(updates=wanted.updates),
        save_path=run_dir,
        verbose=1,
        **wanted.model_dump(include={"targets", "deeper", "average", "games", "seed"}),
    )
    callbacks: list[BaseCallback] = [evaluation]
    if data is not None:
        callbacks.append(Teacher(data, **config.teacher.to_dict()))
    with RunFolder(out) as folder:
        if going_on:
            _same_settings(out / "config.yml", config)
        resumed, init = (run_dir, None) if going_on else (None, args.init_from)
        attach(model, callbacks, run_dir, resumed, init, every)
        folder.write_yaml("config.yml", config.to_dict())
        folder.write_json("provenance.json", provenance(own.seed, command))

        begin = time.perf_counter()
        left = transitions_for(model, own.updates) - model.num_timesteps
        if left > 0:
            try:
                model.learn(left, callbacks, reset_num_timesteps=False, progress_bar=bar)
            except FloatingPointError as error:
                raise RuntimeError(f"{error}; the last checkpoint is in {run_dir}") from error
        if model.num_updates < own.updates:
            print("stopped; the same command goes on from here", file=sys.stderr)
            return 0
        results = {
            "without": sorted(args.without),
            "updates": model.num_updates,
            "seconds": round(time.perf_counter() - begin, 1),
            "best_update": max(evaluation.history, key=lambda entry: entry["score"])["updates"],
            **_measure(run_dir / "best", config, data),
        }
        folder.write_json("results.json", results)
        plot_curves(
            history_curves(evaluation.history),
            out / "curve.svg",
            levels={f"goal, {name}": rho for name, rho in wanted.targets.items()},
            title="Games finished per move while the host learns",
        )
        print(_summary(results))
        return 0


def _same_settings(path: Path, config: RobustConfig) -> None:
    """Refuses to go on with a run under other settings; only its length may change."""
    with errors_named(f"out: {path} is missing or damaged", ValueError):
        before, own = read_yaml(path), config.to_dict()
        before["algorithm"]["updates"] = own["algorithm"]["updates"]
        other = difference(before, own)
    if other:
        raise ValueError(f"out: its run has other settings: {other}")


def _measure(best: Path, config: RobustConfig, data: Dataset | None) -> dict[str, Any]:
    """The best version of a run on starts that chose nothing, and in the singularities' trees."""
    policy: Any = load_policy(best, "host")
    host = player_of(policy, "robust")
    wanted = config.evaluation
    rho = {
        name: resgym.rho(host, name, games=wanted.test_games, seed=wanted.test_seed).to_dict()
        for name in wanted.targets
    }
    results: dict[str, Any] = {
        "parameters": sum(weight.numel() for weight in policy.q_net.parameters()),
        "rho": rho,
        "targets": dict(wanted.targets),
        "margin": worst_margin({name: each["rho"] for name, each in rho.items()}, wanted.targets),
        "singularities": measures.singularity_depths(host, MAX_DEPTH),
    }
    if data is not None:
        held_out = data.split("held_out")
        small = held_out.select(held_out.count <= 5)
        results["held_out_up_to_5_points"] = measures.held_out_accuracy(host, small)
    return results


def _summary(results: Mapping[str, Any]) -> str:
    lines = [
        f"best at update {results['best_update']} of {results['updates']}, "
        f"{results['parameters']} weights"
    ]
    for name, row in results["rho"].items():
        low, high = row["interval_95"]
        lines.append(
            f"rho against {name}: {row['rho']:.4f} ({low:.4f} to {high:.4f}), "
            f"goal {results['targets'][name]:g}"
        )
    lines.append(f"worst margin: {results['margin']:.3f} (1 reaches every goal)")
    lines.append(measures.singularity_summary(results["singularities"]))
    share = results.get("held_out_up_to_5_points")
    if share is not None:
        lines.append(
            f"optimal choices, held out, up to 5 points: {100 * share['accuracy']:.2f} % of "
            f"{share['positions']}"
        )
    return "\n".join(lines)
