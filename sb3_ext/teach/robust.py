"""A host that holds against several opponents at once: reinforcement with the teacher beside it.

The folder --out gets data (the dataset, unless --data names one), run (checkpoints, rho.json, the
best version so far as best and best_model.zip), results.json and curve.svg. The same command goes
on where it was interrupted.

  python -m sb3_ext.teach robust --out runs/robust
  python -m sb3_ext.teach robust --out runs/without --data runs/robust/data --without teacher
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import torch
import yaml
from stable_baselines3.common.callbacks import BaseCallback, CallbackList

import resgym
from resgym.analysis.plots import plot_curves
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.callbacks.checkpoints import Checkpoints
from sb3_ext.callbacks.rho_evaluation import player_of_policy
from sb3_ext.callbacks.signals import Signals
from sb3_ext.common.checkpoint import list_checkpoints
from sb3_ext.common.durable_files import write_text_durably
from sb3_ext.common.folder_lock import sole_writer
from sb3_ext.common.frequency import Every
from sb3_ext.common.provenance import provenance
from sb3_ext.common.registry import unknown_word
from sb3_ext.common.resume import init_from, resume
from sb3_ext.curves import history_curves
from sb3_ext.ddqn import DDQN
from sb3_ext.teach.benchmark import least_depths
from sb3_ext.teach.dataset import MANIFEST, Dataset, load_dataset
from sb3_ext.teach.examples import examples_of
from sb3_ext.teach.families import read_teach_config
from sb3_ext.teach.generate import Plan, generate
from sb3_ext.teach.measures import held_out_accuracy, worst_case_depths
from sb3_ext.teach.reinforcement import Teacher
from sb3_ext.teach.robust_evaluation import MAX_DEPTH, RobustEvaluation, worst_margin
from sb3_ext.teach.train import ENVIRONMENTS, find_config, read_hyperparameters
from sb3_ext.training.config_files import ZOO_KEYS
from sb3_ext.training.loading import load_policy
from sb3_ext.two_player.sections import (
    ConfigError,
    Count,
    Fraction,
    PositiveCount,
    PositiveNumber,
    Section,
    read_section,
)

__all__ = ["HELP", "PARTS", "add_arguments", "measure", "read_robust_config", "run"]

HELP = "train a host against several opponents at once, with the teacher beside it"

CONFIG = "taught/robust.yml"
PARTS = ("teacher", "mixture", "augmentation")
"""What ``--without`` leaves out."""


class _Algorithm(Section):
    """The section ``algorithm``: a file in rl_zoo3's form, and the length of the run."""

    file: str
    updates: PositiveCount
    checkpoint_updates: Count
    seed: Count


class _Data(Section):
    """The section ``data``: see `Plan`, which checks the ranges."""

    config: str
    positions: PositiveCount
    held_out: Fraction
    seed: Count


class _Teacher(Section):
    """The section ``teacher``: see `Teacher`."""

    weight: PositiveNumber
    batch_size: PositiveCount
    temperature: PositiveNumber
    augment: bool
    families: list[str] | None
    seed: Count


class _Evaluation(Section):
    """The section ``evaluation``: see `RobustEvaluation`."""

    targets: dict[str, PositiveNumber]
    deeper: Count
    average: Fraction
    updates: PositiveCount
    games: PositiveCount
    seed: Count
    test_games: PositiveCount
    test_seed: Count


class RobustConfig(Section):
    """A whole file; every key must be there.

    Attributes:
        opponents: who is trained against: names or paths of saved models, and their weights.
    """

    algorithm: _Algorithm
    data: _Data
    teacher: _Teacher
    opponents: dict[str, PositiveNumber]
    evaluation: _Evaluation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--out", type=Path, required=True, help="the folder of everything")
    parser.add_argument(
        "--config", default=CONFIG, metavar="FILE", help=f"all settings (default {CONFIG})"
    )
    parser.add_argument("--data", type=Path, help="a dataset's folder, instead of making one")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="changes",
        metavar="KEY=VALUE",
        help="another value for a setting, such as algorithm.updates=5000; may be repeated",
    )
    parser.add_argument(
        "--opponent",
        action="append",
        default=[],
        dest="opponents",
        metavar="PLAYER=WEIGHT",
        help="one more opponent, such as a responder that an attack found; may be repeated",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=PARTS,
        help="leave a part out, to see what it is good for; without the mixture the first "
        "opponent is the only one, and there is no mirror, which needs a mixture; without "
        "augmentation there is no mirror and the teacher renames no axes; may be repeated",
    )
    parser.add_argument("--init-from", type=Path, metavar="RUN", help="begin with these networks")
    parser.add_argument("--seed", type=int, help="instead of algorithm.seed")
    parser.add_argument("--workers", type=int, default=2, help="processes that label (default 2)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default 1)")
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")


def read_robust_config(
    path: str | Path,
    changes: Sequence[str] = (),
    opponents: Sequence[str] = (),
    without: Sequence[str] = (),
    seed: int | None = None,
) -> RobustConfig:
    """The settings of a file, changed.

    Args:
        path: the file.
        changes: ``section.key=value``.
        opponents: ``player=weight``, added to the mixture.
        without: of `PARTS`; the network's mirror is no part of this file.
        seed: instead of ``algorithm.seed``.

    Raises:
        ValueError: one line that names the field.
    """
    file = find_config(path)
    if not file.is_file():
        raise ValueError(f"config: no such file {file}")
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
        for change in changes:
            _change(values, change)
    except yaml.YAMLError as error:
        raise ValueError(f"{file}: not readable as plain YAML") from error
    if not isinstance(values, dict):
        raise ValueError(f"{file}: must be a mapping, got {values!r:.40}")
    if seed is not None:
        _change(values, f"algorithm.seed={seed}")
    for text in opponents:
        name, _, weight = text.rpartition("=")
        try:
            values["opponents"] = {**values["opponents"], name: float(weight)}
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"opponent: must be PLAYER=WEIGHT, got {text!r}") from None
        if not name:
            raise ValueError(f"opponent: must be PLAYER=WEIGHT, got {text!r}")
    try:
        config = read_section(RobustConfig, values)
    except ConfigError as error:
        raise ValueError(f"{file}: {error}") from None
    for name in ("opponents", "evaluation.targets"):
        if not (config.opponents if name == "opponents" else config.evaluation.targets):
            raise ValueError(f"{file}: {name} must have at least one player, got none")
    if "mixture" in without:
        first = next(iter(config.opponents))
        config = config.model_copy(update={"opponents": {first: 1.0}})
    if "augmentation" in without:
        teacher = config.teacher.model_copy(update={"augment": False})
        config = config.model_copy(update={"teacher": teacher})
    return config


def _change(values: Any, change: str) -> None:
    key, equals, text = change.partition("=")
    *sections, last = key.split(".")
    if not equals or not last:
        raise ValueError(f"set: must be KEY=VALUE, got {change!r}")
    inside = values
    for name in sections:
        if not isinstance(inside, dict) or name not in inside:
            known = list(inside) if isinstance(inside, dict) else []
            raise ValueError(f"set: {unknown_word('section', name, known)}")
        inside = inside[name]
    if not isinstance(inside, dict):
        raise ValueError(f"set: {key} names no setting")
    inside[last] = yaml.safe_load(text)


# ------------------------------------------------------------------------------------ the run


def run(args: argparse.Namespace, command: Sequence[str]) -> int:
    """Runs the command; see `sb3_ext.teach.cli.main`."""
    config = read_robust_config(args.config, args.changes, args.opponents, args.without, args.seed)
    hyperparameters = read_hyperparameters(config.algorithm.file, ENVIRONMENTS["host"])
    if {"augmentation", "mixture"} & set(
        args.without
    ):  # one opponent alone tells mirror images apart
        kept = dict(hyperparameters.get("policy_kwargs", {}))
        kept.pop("mirror", None)
        hyperparameters = {**hyperparameters, "policy_kwargs": kept}
    if args.threads < 1:
        raise ValueError(f"threads must be at least 1, got {args.threads}")
    torch.set_num_threads(args.threads)
    out: Path = args.out
    if out.exists() and not out.is_dir():
        raise ValueError(f"out: must be a folder, {out} is a file")
    model = _model(config, hyperparameters)
    data = None if "teacher" in args.without else _data(config, args, command)
    callbacks = _callbacks(config, data, out / "run")
    out.mkdir(parents=True, exist_ok=True)
    with sole_writer(out):
        return _run(args, command, config, model, callbacks, data)


def _run(
    args: argparse.Namespace,
    command: Sequence[str],
    config: RobustConfig,
    model: DDQN,
    callbacks: list[BaseCallback],
    data: Dataset | None,
) -> int:
    out: Path = args.out
    bar = not args.no_progress and sys.stderr.isatty()
    if list_checkpoints(out / "run"):
        _same_settings(out / "config.yml", config)
        resume(model, out / "run", CallbackList(callbacks))
    elif args.init_from is not None:
        init_from(model, args.init_from)
    write_text_durably(out / "config.yml", yaml.safe_dump(config.to_dict(), sort_keys=False))
    record = provenance(config.algorithm.seed, command)
    write_text_durably(out / "provenance.json", json.dumps(record, indent=1) + "\n")

    begin = time.perf_counter()
    left = _transitions(model, config.algorithm.updates) - model.num_timesteps
    if left > 0:
        try:
            model.learn(left, callbacks, reset_num_timesteps=False, progress_bar=bar)
        except FloatingPointError as error:
            raise RuntimeError(f"{error}; the last checkpoint is in {out / 'run'}") from error
    if model._n_updates < config.algorithm.updates:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 0
    results = {
        "without": sorted(args.without),
        "updates": int(model._n_updates),
        "seconds": round(time.perf_counter() - begin, 1),
        **measure(out / "run", config, data),
    }
    write_text_durably(out / "results.json", json.dumps(results, indent=1) + "\n")
    history = json.loads((out / "run" / "rho.json").read_text())
    plot_curves(
        history_curves(history),
        out / "curve.svg",
        levels={f"goal, {name}": rho for name, rho in config.evaluation.targets.items()},
        title="Games finished per move while the host learns",
    )
    print(summary(results))
    return 0


def _model(config: RobustConfig, hyperparameters: Mapping[str, Any]) -> DDQN:
    keywords = {**hyperparameters.get("env_kwargs", {}), "opponent": dict(config.opponents)}
    env = gymnasium.make_vec(
        ENVIRONMENTS["host"],
        num_envs=int(hyperparameters.get("n_envs", 1)),
        vectorization_mode="vector_entry_point",
        **keywords,
    )
    arguments = {key: value for key, value in hyperparameters.items() if key not in ZOO_KEYS}
    if "exploration_rate" in hyperparameters:
        arguments["exploration_rate"] = hyperparameters["exploration_rate"]
    arguments = {"device": "cpu", **arguments, "seed": config.algorithm.seed}
    return DDQN(hyperparameters["policy"], TensorVecEnv(env), **arguments)


def _data(config: RobustConfig, args: argparse.Namespace, command: Sequence[str]) -> Dataset:
    if args.data is not None:
        return load_dataset(args.data, dimension=3, seat="host")
    wanted = config.data.model_dump()
    plan = Plan(read_teach_config(wanted.pop("config")), seat="host", objective="depth", **wanted)
    folder = args.out / "data"
    if not (folder / MANIFEST).is_file():
        progress = not args.no_progress and sys.stderr.isatty()
        generate(plan, folder, workers=args.workers, progress=progress, command=command)
    return load_dataset(folder, dimension=plan.config.dimension, seat="host")


def _callbacks(config: RobustConfig, data: Dataset | None, folder: Path) -> list[BaseCallback]:
    wanted = config.evaluation
    callbacks: list[BaseCallback] = [
        RobustEvaluation(
            wanted.targets,
            Every(updates=wanted.updates),
            deeper=wanted.deeper,
            average=wanted.average,
            games=wanted.games,
            seed=wanted.seed,
            save_path=folder,
            verbose=1,
        )
    ]
    if data is not None:
        callbacks.append(Teacher(data, **config.teacher.model_dump()))
    callbacks.append(Signals(verbose=1))
    every = config.algorithm.checkpoint_updates or config.algorithm.updates
    callbacks.append(Checkpoints(folder, Every(updates=every)))
    return callbacks


def _transitions(model: DDQN, updates: int) -> int:
    """Transitions after which so many updates have been made (whole blocks of them)."""
    frequency: Any = model.train_freq
    rows = model.n_envs * frequency.frequency
    if model.replay_ratio is not None or model.gradient_steps < 1:
        raise ValueError("algorithm: gradient_steps must be at least 1, without replay_ratio")
    # Updates begin with the rollout that brings more transitions than learning_starts.
    return (model.learning_starts // rows - (-updates // model.gradient_steps)) * rows


def _same_settings(path: Path, config: RobustConfig) -> None:
    """Refuses to go on with a run under other settings; only its length may change."""
    try:
        before = yaml.safe_load(path.read_text(encoding="utf-8"))
        own = config.to_dict()
        for section in own:
            saved, now = before[section], own[section]
            if section == "algorithm":
                saved, now = ({k: v for k, v in x.items() if k != "updates"} for x in (saved, now))
            if saved != now:
                raise ValueError(f"out: its run has another section {section!r}: {saved}")
    except (OSError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise ValueError(f"out: {path} is missing or damaged") from error


# ------------------------------------------------------------------------------------ measures


def measure(run_dir: Path, config: RobustConfig, data: Dataset | None = None) -> dict[str, Any]:
    """The best version of a run on starts that chose nothing, and in the singularities' trees.

    Args:
        run_dir: holds ``best`` and ``rho.json``.
        config: of the run.
        data: its held-out part is measured, if there is one.

    Returns:
        plain data; see `summary`.
    """
    policy: Any = load_policy(run_dir / "best", "host")
    host = player_of_policy(policy, "robust")
    wanted = config.evaluation
    rho = {
        name: resgym.rho(host, name, games=wanted.test_games, seed=wanted.test_seed).to_dict()
        for name in wanted.targets
    }
    names = resgym.singularity_names()
    starts = [[tuple(point) for point in resgym.singularity(name)] for name in names]
    depths = worst_case_depths(host, starts, max_depth=MAX_DEPTH)
    history = json.loads((run_dir / "rho.json").read_text())
    results: dict[str, Any] = {
        "best_update": max(history, key=lambda entry: entry["score"])["updates"],
        "parameters": sum(weight.numel() for weight in policy.q_net.parameters()),
        "rho": rho,
        "targets": dict(wanted.targets),
        "margin": worst_margin({name: each["rho"] for name, each in rho.items()}, wanted.targets),
        "singularities": {
            name: {"depth": depth, "least_depth": least}
            for name, depth, least in zip(names, depths, least_depths(starts, 300_000), strict=True)
        },
    }
    if data is not None:
        part: Any = data.split("held_out")
        held_out = examples_of(part)
        small = held_out.select(held_out.count <= 5)
        results["held_out_up_to_5_points"] = held_out_accuracy(policy, small)
    return results


def summary(results: Mapping[str, Any]) -> str:
    """The measures as a few lines of text."""
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
    deeper = [
        f"{name} {row['depth']} (least {row['least_depth']})"
        for name, row in results["singularities"].items()
        if row["depth"] != row["least_depth"]
    ]
    least = len(results["singularities"]) - len(deeper)
    lines.append(
        f"singularities in the least depth: {least} of {len(results['singularities'])}"
        + (f"; others: {', '.join(deeper)}" if deeper else "")
    )
    share = results.get("held_out_up_to_5_points")
    if share is not None:
        lines.append(
            f"optimal choices, held out, up to 5 points: {100 * share['accuracy']:.2f} % of "
            f"{share['positions']}"
        )
    return "\n".join(lines)
