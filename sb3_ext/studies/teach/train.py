"""Teaches a policy the optimal moves of a dataset.

The folder --out gets checkpoints, which --resume goes on from and which are players and starting
points too (resgym tree E8 --host FOLDER, python -m sb3_ext.train --init-from FOLDER), model.zip in
the form of stable-baselines3, history.json, held_out.json, config.yml and provenance.json.

  python -m sb3_ext.teach train --data runs/teach/data --out runs/teach/host
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
from tqdm import tqdm

import resgym  # noqa: F401  registers the environments
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.checkpoints.checkpoint import list_checkpoints
from sb3_ext.checkpoints.format import errors_named
from sb3_ext.checkpoints.resume import init_from
from sb3_ext.config.reading import find_config
from sb3_ext.config.sections import ConfigError
from sb3_ext.ddqn import DDQN
from sb3_ext.runs.best import save_model
from sb3_ext.runs.command_line import add_options
from sb3_ext.runs.folder import RunFolder
from sb3_ext.runs.provenance import provenance
from sb3_ext.runs.signals import RunSignals
from sb3_ext.runs.stopping import StopRules
from sb3_ext.studies.teach.dataset import joined, load_dataset
from sb3_ext.studies.teach.examples import checked
from sb3_ext.studies.teach.measures import held_out_accuracy
from sb3_ext.studies.teach.pretraining import Pretraining
from sb3_ext.studies.teach.settings import TeachingSettings, read_settings
from sb3_ext.training.config_files import ZOO_KEYS, check_hyperparameters, read_sections

ENVIRONMENTS = {"agent": "resgym/HironakaAgent-v0", "host": "resgym/HironakaHost-v0"}
"""The environment of each seat."""

ALGO_CONFIG = "taught/ddqn.yml"
SETTINGS = "taught/host.yml"


def read_hyperparameters(path: str | Path, env_id: str) -> dict[str, Any]:
    """The section of an environment in a file in rl_zoo3's form, checked for DDQN.

    Raises:
        ValueError: the file or section is missing, or a key is wrong.
    """
    file = find_config(path, field="algo-config")
    sections = read_sections(file)
    section = sections.get(env_id, sections.get("default"))
    if section is None:
        raise ValueError(f"algo-config: {file} has neither a section {env_id} nor 'default'")
    check_hyperparameters(section, DDQN, f"{file}: {env_id}")
    return section


def build_model(
    env_id: str, hyperparameters: Mapping[str, Any], dimension: int, seed: int, num_envs: int = 1
) -> tuple[DDQN, str]:
    """A DDQN model with fresh networks, and the name of its environment's reward.

    ``dimension`` is that of the data, used where the hyperparameters name none.

    Raises:
        ConfigError: something in the file does not fit; one line.
    """
    keywords = {"dimension": dimension, **hyperparameters.get("env_kwargs", {})}
    of_env = set(ZOO_KEYS) - {"exploration_rate"}
    arguments = {key: value for key, value in hyperparameters.items() if key not in of_env}
    arguments = {"device": "cpu", **arguments, "seed": seed}
    with errors_named("algo-config", ConfigError):
        env = gymnasium.make_vec(
            env_id, num_envs=num_envs, vectorization_mode="vector_entry_point", **keywords
        )
        model = DDQN(hyperparameters["policy"], TensorVecEnv(env), **arguments)
    return model, keywords.get("reward", "terminal")


def teach(
    data: Any,
    out: Path,
    hyperparameters: Mapping[str, Any],
    settings: TeachingSettings,
    resume: bool,
    progress: bool,
    report: bool,
    command: Sequence[str],
    start: Path | None = None,
    rules: StopRules | None = None,
    updates_before: int = 0,
) -> tuple[DDQN, dict[str, Any]] | None:
    """Teaches a new model, writes everything into the folder ``out``, and measures it.

    With ``resume`` it goes on from the folder's newest checkpoint; otherwise there must be none.
    ``progress`` shows a bar, ``report`` prints every measurement; ``start`` is a run whose networks
    a new model begins with. ``rules`` end it with the best version so far; ``updates_before`` are
    those of earlier trainings, and metrics the measurements: ``teach/accuracy``, ``teach/loss``.

    Returns:
        The model and the result of `held_out_accuracy`; None if it was stopped by a signal.

    Raises:
        RuntimeError: the loss became NaN or infinite.
        ValueError: something does not fit; one line.
    """
    if not resume and list_checkpoints(out):
        raise ValueError(f"out: {out} holds a run already; --resume goes on with it")
    model, reward = build_model(
        ENVIRONMENTS[data.seat], hyperparameters, data.dimension, settings.seed
    )
    if start is not None and not resume:
        init_from(model, start)
    pretraining = Pretraining(model, data, settings, reward)
    with RunFolder(out) as folder:
        if resume:
            pretraining.resume(out)
        record = {"algorithm": dict(hyperparameters), "train": settings.to_dict()}
        folder.write_yaml("config.yml", record)
        folder.write_json("provenance.json", provenance(settings.seed, command))
        left = settings.updates - pretraining.update
        signals = RunSignals(lambda _: pretraining.request_stop(), pretraining.request_checkpoint)
        with tqdm(total=left, unit="step", disable=not progress) as bar, signals:

            def end_by_rule() -> None:
                if rules and rules.ended(max_updates=updates_before + pretraining.update):
                    pretraining.request_stop()

            def tick() -> None:
                bar.update()
                end_by_rule()

            def measured(entry: dict[str, Any]) -> None:
                bar.set_postfix({"accuracy": entry["accuracy"]})
                if rules:
                    rules.observe({f"teach/{name}": value for name, value in entry.items()})
                end_by_rule()
                if report:
                    text = (
                        "update {update}: loss {loss:.4f}, accuracy {accuracy:.4f}, {seconds:.0f} s"
                    )
                    print(text.format(**entry), file=sys.stderr, flush=True)

            try:
                finished = pretraining.run(out, report=measured, tick=tick)
            except FloatingPointError as error:
                raise RuntimeError(f"{error}; the last checkpoint is in {out}") from error
        if not finished:
            if rules is None or rules.reason is None:
                return None
            pretraining.take_best()
        save_model(out / "model.zip", model)
        result = held_out_accuracy(player_of(model), checked(data.split("held_out")))
        result |= {"seconds": round(pretraining.seconds, 1), "updates": pretraining.update}
        folder.write_json("held_out.json", result)
        return model, result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    data = "the dataset's folder, or those of several that are taught together"
    add("--data", type=Path, required=True, nargs="+", metavar="FOLDER", help=data)
    add("--init-from", type=Path, metavar="RUN", help="begin with these networks")
    add("--out", type=Path, required=True, help="the folder of the run")
    algorithm = "hyperparameters in rl_zoo3's form, networks included (default %(default)s)"
    add("--algo-config", default=ALGO_CONFIG, metavar="FILE", help=algorithm)
    settings = "its section 'train' has the settings (default %(default)s)"
    add("--config", default=SETTINGS, metavar="FILE", help=settings)
    add("--seed", type=int, help="instead of the setting 'seed'")
    add("--resume", action="store_true", help="go on with the run in --out")
    add_options(parser, "--set", "--threads", "--json", "--no-progress")


def run(args: argparse.Namespace, command: Sequence[str]) -> int:
    """Runs the command; see `sb3_ext.studies.teach.cli.main`."""
    changes = args.settings + ([] if args.seed is None else [f"seed={args.seed}"])
    if args.resume and args.init_from:
        raise ConfigError("init-from: a run that goes on has its networks; give only --resume")
    settings = read_settings(args.config, changes)
    data = joined([load_dataset(each) for each in args.data])
    hyperparameters = read_hyperparameters(args.algo_config, ENVIRONMENTS[data.seat])
    bar = not args.no_progress and sys.stderr.isatty()
    report = not bar and not args.json
    taught = teach(
        data, args.out, hyperparameters, settings, args.resume, bar, report, command, args.init_from
    )
    if taught is None:
        print(f"stopped; --resume goes on with {args.out}", file=sys.stderr)
        return 0
    print(json.dumps(taught[1]) if args.json else accuracy_table(taught[1]))
    return 0


def accuracy_table(result: Mapping[str, Any]) -> str:
    """The result of `held_out_accuracy` as text."""
    percent = 100 * result["accuracy"]
    lines = [f"optimal choices on {result['positions']} held-out positions: {percent:.2f} %"]
    for title, key in (("points", "by_count"), ("value", "by_value")):
        for number, share in result[key].items():
            percent = 100 * share["accuracy"]
            lines.append(f"  {title} {number}: {percent:.2f} % of {share['positions']}")
    return "\n".join(lines)
