"""The command line: ``python -m sb3_ext.tune STUDY``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy.exc
from optuna.exceptions import ExperimentalWarning, OptunaError
from optuna.trial import TrialState

from resgym.cli import OneLineParser
from resgym.trust import add_trust, command_line
from sb3_ext.config.checks import check_count
from sb3_ext.config.reading import find_config, read_mapping, split_setting
from sb3_ext.config.sections import ConfigError
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import FAILED, Report, add_options, reporter, torch_threads
from sb3_ext.runs.signals import RunSignals
from sb3_ext.runs.stopping import StopRules, read_stop_rules
from sb3_ext.tuning import results
from sb3_ext.tuning.storage import open_study
from sb3_ext.tuning.study_file import StudyConfig
from sb3_ext.tuning.worker import StopRequest, counts, work

_MOST_WORKERS = 1024
_LOOK_SECONDS = 0.2


@command(
    "tune",
    failed=(*FAILED, OptunaError, sqlalchemy.exc.SQLAlchemyError),
    interrupted="stopped; the same command goes on from here",
)
def main(arguments: Sequence[str]) -> int:
    """Tunes as the command line says; returns the exit code, see `command`.

    A study that was stopped by SIGINT or SIGTERM shows what it found so far; the code is 0.
    """
    args = _parser().parse_args(arguments)
    if check_count("--workers", args.workers) > _MOST_WORKERS:
        raise ConfigError(f"--workers must be at most {_MOST_WORKERS}, got {args.workers}")
    check_count("--heartbeat", args.heartbeat)
    known = ("max_updates", "max_seconds", "until")
    rules = read_stop_rules(args.stop, known, ("best", "trials", "value"))
    trusted, threads = command_line(args.trust, args.study), torch_threads(args.threads)
    with trusted, threads, warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        # The workers give theirs outside of it, see `worker`.
        warnings.filterwarnings("ignore", message="Heartbeat of storage is supposed to be used")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        return _tune(args, list(arguments), rules)


def _parser() -> argparse.ArgumentParser:
    shipped = ", ".join(StudyConfig.shipped())
    parser = OneLineParser(
        prog="python -m sb3_ext.tune",
        description="Searches hyperparameters with Optuna, by one worker or many.",
        epilog="The same command on another machine, with the same storage, is one more worker.",
    )
    add = parser.add_argument
    add("study", help=f"a YAML file, or one of {shipped}")
    text = "a journal file, or a URL of Optuna such as sqlite:///study.db (default: in the folder)"
    add("--storage", help=text)
    add("--name", help="name of the study in the storage, instead of the file's")
    add("--trials", type=int, help="trials of all workers together, instead of the file's")
    add("--workers", type=int, default=1, help="processes on this machine (default 1)")
    add("--folder", type=Path, help="of the results (default runs/tune/<name>)")
    text = "seconds between heartbeats; a worker that misses six is considered dead (default 10)"
    add("--heartbeat", type=int, default=10, metavar="SECONDS", help=text)
    add("--worker-of", type=int, help=argparse.SUPPRESS)
    add_options(parser, "--set", "--stop", "--threads", "--no-progress")
    add_trust(parser)
    return parser


def _tune(args: argparse.Namespace, arguments: list[str], rules: StopRules | None) -> int:
    config = StudyConfig.read(args.study)
    changes: dict[str, Any] = {} if args.name is None else {"name": args.name}
    if args.settings:
        given = dict(split_setting(each) for each in args.settings)
        changes["settings"] = {**config.settings, **given}
    if changes:
        data = read_mapping(find_config(args.study, StudyConfig.folder, StudyConfig.field))
        config = StudyConfig.read({**data, **changes})
    name = config.name
    trials = config.trials if args.trials is None else check_count("--trials", args.trials)
    folder = args.folder or Path("runs/tune") / name
    if folder.is_file():
        raise ConfigError(f"--folder: must be a folder, {folder} is a file")
    storage = str(folder / "journal.log") if args.storage is None else args.storage
    study = open_study(config, storage, name, args.heartbeat)

    say = reporter(True)
    # The first process alone looks, and ends its workers.
    look = _Look(rules, study) if rules is not None and args.worker_of is None else lambda: False
    stop = StopRequest(args.worker_of, look)
    with RunSignals(stop.ask, lambda: None):
        if args.workers == 1:
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
                work(study, config, trials, folder, stop, reporter(not args.no_progress))
        else:
            _run_workers(args.workers, arguments, stop, say)
    if args.worker_of is not None:
        return 0
    print(results.table(study))
    path = results.write(study, config, folder, say)
    done = sum(t.state.is_finished() and counts(t) for t in study.get_trials(deepcopy=False))
    if rules is not None and rules.reason is not None:
        print(f"\nends after {done} of {trials} trials: {rules.reason}; the same command goes on")
    elif stop.asked:
        print(f"\nstopped after {done} of {trials} trials; the same command goes on from here")
    elif done < trials:
        raise RuntimeError(f"all workers ended after {done} of {trials} trials, see above")
    elif path is None:
        raise RuntimeError("no trial was finished; the table says why")
    if path is not None:
        print(f"\nresults are in {folder}; train with the best of them:")
        print(config.target.command_line(path))
    return 0


class _Look:
    """Shows a study to rules; what it gives is whether they end it.

    Updates are the sum over the last reports of all trials, which count steps where a target does;
    metrics are ``value``, of each finished trial, ``best``, the best so far, and ``trials``.
    """

    def __init__(self, rules: StopRules, study: optuna.Study) -> None:
        self.rules, self.study, self._seen = rules, study, set[int]()

    def __call__(self) -> bool:
        updates = 0
        if self.rules.conditions or "max_updates" in self.rules.budgets:
            trials = self.study.get_trials(deepcopy=False)
            updates = sum(max(trial.intermediate_values, default=0) for trial in trials)
            for trial in trials:
                if trial.number not in self._seen and trial.state is TrialState.COMPLETE:
                    self._seen.add(trial.number)
                    best = {"best": self.study.best_value, "trials": len(self._seen)}
                    self.rules.observe({"value": float(trial.value or 0.0), **best})
        return self.rules.ended(max_updates=updates)


def _run_workers(number: int, arguments: Sequence[str], stop: StopRequest, say: Report) -> None:
    """Runs this command in so many processes, each with one worker, until all have ended."""
    one = ["--workers", "1", "--worker-of", str(os.getpid())]
    line = [sys.executable, "-m", "sb3_ext.tune", *arguments, *one]
    # Ctrl-C on the terminal reaches this process alone, which hands it on once.
    workers = [subprocess.Popen(line, start_new_session=True) for _ in range(number)]
    running, told = dict(enumerate(workers)), False
    while running:
        if stop.asked and not told:
            told = True
            for worker in running.values():
                worker.terminate()
        for index, worker in list(running.items()):
            if worker.poll() is not None:
                del running[index]
                if worker.returncode < 0 and not told:
                    say(f"worker {index} was ended by signal {-worker.returncode}")
        time.sleep(_LOOK_SECONDS)
