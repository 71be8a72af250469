"""Search hyperparameters with Optuna, with one worker or many.

A trial is a command of this package with sampled values; the study reads its metrics. The same
command on another machine, with the same storage, adds a worker.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy.exc
import yaml
from filelock import FileLock
from optuna.exceptions import OptunaError, TrialPruned, UpdateFinishedTrialError
from optuna.importance import PedAnovaImportanceEvaluator
from optuna.storages import RDBStorage, RetryFailedTrialCallback, fail_stale_trials
from optuna.trial import FrozenTrial, TrialState

from sb3_ext.__main__ import COMMANDS
from sb3_ext.config.checks import check_count, one_line
from sb3_ext.config.reading import shipped_configs
from sb3_ext.config.registry import unknown_word
from sb3_ext.config.sections import REFUSALS, ConfigError, errors_of, from_data
from sb3_ext.runs.driver import Job, Pulse, Run, Used, drive, parser_of
from sb3_ext.runs.files import write_text_durably
from sb3_ext.tune.study import PRUNERS, StudyConfig

ERROR = "error"
"""Attribute of a trial that failed by its settings: what was wrong."""
SILENT_INTERVALS = 6
"""A worker without a heartbeat for this many intervals counts as dead."""
RETRIES = 3
"""A trial whose workers died more often than this is left."""
_LOOK_SECONDS = 0.3


class _Left(Exception):
    """A trial ends without a result."""


def counts(trial: FrozenTrial) -> bool:
    """Whether it is one of the trials that the study shall have.

    Trials that were given up are tried again under another number and do not count themselves.
    """
    return trial.state is not TrialState.FAIL or ERROR in trial.user_attrs


class Tune(Job[StudyConfig]):
    """One study, or one worker of it."""

    name = "tune"
    about = __doc__ or ""
    examples = """\
examples:
  python -m sb3_ext.tune train --workers 2
  python -m sb3_ext.tune attack --storage postgresql://host/studies --set trials=100
"""
    Config = StudyConfig
    rules = ("max_seconds", "until")
    metrics = ("best", "trials", "value")
    may_change = frozenset({"trials"})
    alone = False

    def __init__(self, config: StudyConfig, run: Run) -> None:
        super().__init__(config, run)
        for name in ("workers", "heartbeat"):
            check_count(name, getattr(run.given, name))
        # A key that does not exist or a wrong type is found now, not in every trial.
        with errors_of("target, settings or search"):
            self._job(config.first())
        self._seen, self._stopped = 0, False

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        """Adds the study, and who works on it."""
        add = parser.add_argument
        shipped = ", ".join(shipped_configs("tune"))
        add("config", metavar="study", help=f"a YAML file, or one of {shipped}")
        text = "Optuna's storage, such as postgresql://... (default: an SQLite file in the folder)"
        add("--storage", help=text)
        add("--trials", type=int, help="trials of all workers together (default: as in the file)")
        add("--workers", type=int, default=1, help="processes on this machine (default 1)")
        text = "seconds between heartbeats; a worker that misses six counts as dead (default 10)"
        add("--heartbeat", type=int, default=10, metavar="SECONDS", help=text)
        add("--worker-of", type=int, help=argparse.SUPPRESS)

    @classmethod
    def read(cls, given: argparse.Namespace) -> StudyConfig:
        """The study, with another number of trials."""
        more = [] if given.trials is None else [f"trials={given.trials}"]
        return StudyConfig.read(given.config, [*given.settings, *more])

    @classmethod
    def place(cls, given: argparse.Namespace, config: StudyConfig) -> Path:
        """A folder for each study."""
        return Path("runs/tune", config.name)

    def _job(self, searched: Mapping[str, Any]) -> Job[Any]:
        """The command of a trial."""
        target = self.config.target
        job = _command(target.command)
        values = {**self.config.settings, **searched}.items()
        words = [f"--set={name}={json.dumps(value)}" for name, value in values]
        given = parser_of(job).parse_args([*words, *self._options(job, target.config)])
        return job(job.read(given), Run(None, given=given, common=self.run_of.folder))

    def _options(self, job: type[Job[Any]], file: str) -> list[str]:
        """What of the target are options of its command; they cannot be taken for others."""
        given = {**self.config.target.to_dict(), "config": file, "command": None}
        player = given.pop("player")
        return [
            f"{action.option_strings[0]}={given[action.dest]}"
            for action in parser_of(job)._actions
            if given.get(action.dest) is not None
        ] + ([] if player is None else ["--", player])

    def run(self, pulse: Pulse) -> None:
        """Tries until this many trials are finished by all workers, or until it is stopped."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is experimental, and steps reported twice
            optuna.logging.set_verbosity(optuna.logging.ERROR)
            try:
                with FileLock(Path(self.run_of.folder or ".", "study.lock")):  # tables: once
                    self._open()
                (self._supervise if self.run_of.given.workers > 1 else self._work)(pulse)
            except (OptunaError, sqlalchemy.exc.SQLAlchemyError) as error:
                raise RuntimeError(f"storage: {one_line(error)}") from error
        done = sum(trial.state.is_finished() for trial in self._counted())
        if not self._stopped and done < self.config.trials:
            raise RuntimeError(f"all workers ended after {done} of {self.config.trials} trials")

    def _open(self) -> None:
        given, config = self.run_of.given, self.config
        where = given.storage or f"sqlite:///{self.run_of.folder}/study.db"
        with errors_of("storage: " + where):
            try:
                self.study = optuna.create_study(
                    storage=_storage(where, given.heartbeat),
                    study_name=config.name,
                    direction=config.direction,
                    sampler=config.make_sampler(),
                    pruner=from_data(PRUNERS, "name", config.pruner),
                    load_if_exists=True,
                )
            except (ImportError, OSError, sqlalchemy.exc.SQLAlchemyError) as error:
                raise ValueError(one_line(error)) from error
        wanted = json.loads(json.dumps({**config.to_dict(), "trials": None}))
        if self.study.user_attrs.setdefault("study", wanted) != wanted:
            raise ConfigError(f"name: got {config.name!r}, which {where} holds another study of")
        self.study.set_user_attr("study", wanted)

    def _counted(self) -> list[FrozenTrial]:
        return [trial for trial in self.study.get_trials(deepcopy=False) if counts(trial)]

    def _goes_on(self, pulse: Pulse, **metrics: float) -> bool:
        alive = self.run_of.given.worker_of in (None, os.getppid())
        self._stopped |= not (alive and pulse(Used(), exact=False, **metrics))
        return not self._stopped

    def _look(self, pulse: Pulse) -> bool:
        """Report what is new; return whether to continue."""
        finished = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        for trial in finished[self._seen :]:
            self._seen += 1
            found = {"value": float(trial.value or 0.0), "best": self.study.best_value}
            self._goes_on(pulse, trials=float(self._seen), **found)
        return self._goes_on(pulse)

    def _supervise(self, pulse: Pulse) -> None:
        """Runs this command in this many processes, each with one worker, until all have ended."""
        given = self.run_of.given
        one = ["--workers", "1", "--worker-of", str(os.getpid())]
        line = [sys.executable, "-m", "sb3_ext.tune", *given.arguments, *one]
        # Ctrl-C on the terminal reaches this process alone, which hands it on once.
        alone: dict[str, Any] = {"start_new_session": True, "stdout": subprocess.DEVNULL}
        workers = [subprocess.Popen(line, **alone) for _ in range(given.workers)]
        told = False
        while any(worker.poll() is None for worker in workers):
            if not told and not self._look(pulse):
                told = True
                for worker in workers:
                    worker.terminate()
            time.sleep(_LOOK_SECONDS)
        for number, worker in enumerate(workers):
            if worker.returncode < 0 and not told:
                self.run_of.say(f"worker {number} was ended by signal {-worker.returncode}")

    def _work(self, pulse: Pulse) -> None:
        while self._look(pulse):
            with suppress(NotImplementedError):  # a proxy tells no signs of life
                fail_stale_trials(self.study)
            known = self._counted()
            if len(known) < self.config.trials or any(
                trial.state is TrialState.WAITING for trial in known
            ):
                with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
                    self._one(pulse)
            elif all(trial.state.is_finished() for trial in known):
                return
            else:
                time.sleep(_LOOK_SECONDS)  # the last worker waits for the others

    def _one(self, pulse: Pulse) -> None:
        number: list[int] = []
        try:
            self.study.optimize(partial(self._try, pulse, number), n_trials=1, catch=(_Left,))
        except (UpdateFinishedTrialError, ValueError):
            trial = self.study.get_trials(deepcopy=False)[number[0]]
            if trial.state is TrialState.RUNNING:
                raise
            self.run_of.say(f"trial {number[0]}: its worker missed its heartbeats")

    def _try(self, pulse: Pulse, number: list[int], trial: optuna.Trial) -> float:
        """One trial: the worst of what its command measured last."""
        number.append(trial.number)
        earlier = self.study.get_trials(deepcopy=False)[: trial.number]
        if sum(map(counts, earlier)) >= self.config.trials:
            raise _Left  # another worker was quicker
        begin, measured = time.monotonic(), dict[str, float]()
        pruned = False

        def beat(used: Used, *, exact: bool = True, **metrics: float) -> bool:
            nonlocal pruned
            measured.update(metrics)
            if metrics.keys() & self.config.value and measured.keys() >= {*self.config.value}:
                trial.report(self.config.worst(measured), used.updates)
                pruned = pruned or trial.should_prune()
            return self._goes_on(pulse) and not pruned

        result = "failed"
        try:
            self._job(self.config.suggest(trial)).run(beat)
            if self._stopped:
                self.study.enqueue_trial(trial.params)
                result = "stopped; another worker repeats it"
                raise _Left
            if pruned:
                result = "pruned"
                raise TrialPruned
            if missing := {*self.config.value} - measured.keys():
                raise ConfigError(f"value: {unknown_word('metric', min(missing), measured)}")
            value = self.config.worst(measured)
            result = f"{value:.4f}"
            return value
        except UpdateFinishedTrialError:
            result = "given up"
            raise
        except REFUSALS as error:
            trial.set_user_attr(ERROR, f"{type(error).__name__}: {one_line(error)}")
            result = f"failed: {one_line(error)}"
            raise _Left from error
        finally:
            self.run_of.say(f"trial {trial.number}: {result} ({time.monotonic() - begin:.0f} s)")

    def report(self) -> str:
        """Writes what was found: a table, Optuna's plots, the best configuration."""
        folder = self.run_of.folder
        if self.run_of.given.worker_of is not None or folder is None:
            return ""  # the first process alone tells
        frame = self.study.trials_dataframe()
        write_text_durably(folder / "trials.csv", frame.to_csv(index=False))
        table = self._table()
        if all(trial.state is not TrialState.COMPLETE for trial in self._counted()):
            if not self._stopped:
                raise RuntimeError(f"no trial was finished\n{table}")
            return table
        best, path, target = self.study.best_trial, folder / "best.yml", self.config.target
        made = self._job(self.config.suggest(best))
        words = self._options(type(made), str(path))
        line = shlex.join(["python", "-m", f"sb3_ext.{target.command}", *words])
        text = yaml.safe_dump(json.loads(json.dumps(made.identity())), sort_keys=False)
        heading = f"# Trial {best.number} of {self.study.study_name}, value {best.value:.6g}:\n"
        write_text_durably(path, f"{heading}# {line}\n{text}")
        self._plot(folder)
        return f"{table}\n\nresults are in {folder}; train with the best:\n{line}"

    def _table(self) -> str:
        """The trials that count, the best first, those that have no result last."""
        shown: Any = self.study.trials_dataframe(
            ("number", "state", "value", "params", "user_attrs")
        )
        if shown.empty:
            return "no trials"
        shown = shown[shown.number.isin([trial.number for trial in self._counted()])]
        shown = shown.assign(state=shown.state.str.lower(), value=shown.value.astype(float))
        ascending = self.config.direction == "minimize"
        shown = shown.sort_values("value", ascending=ascending, kind="stable")
        shown.columns = shown.columns.str.replace("^(params|user_attrs)_", "", regex=True)
        return str(shown.to_string(index=False, na_rep="", float_format="{:.4f}".format))

    def _plot(self, folder: Path) -> None:
        try:
            import matplotlib
        except ImportError:
            self.run_of.say("no plots without matplotlib: pip install 'resgym[plots]'")
            return
        matplotlib.use("Agg")
        import matplotlib.pyplot
        from optuna.visualization import matplotlib as plots

        evaluator = PedAnovaImportanceEvaluator()
        drawn: dict[str, Any] = {
            "history": plots.plot_optimization_history,
            "importances": partial(plots.plot_param_importances, evaluator=evaluator),
            "intermediate": plots.plot_intermediate_values,
            "slices": plots.plot_slice,
        }
        for name, draw in drawn.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # experimental, too few trials, equal limits
                try:
                    draw(self.study)
                    matplotlib.pyplot.savefig(folder / f"{name}.png", bbox_inches="tight")
                except (RuntimeError, ValueError) as error:  # too few trials, or all are equal
                    self.run_of.say(f"no plot of {name}: {one_line(error)}")
            matplotlib.pyplot.close("all")


def _storage(where: str, heartbeat: int) -> Any:
    if where.startswith("grpc://"):
        host, _, port = where.removeprefix("grpc://").partition(":")
        return optuna.storages.GrpcStorageProxy(host=host, port=int(port or 13000))
    waits = {"connect_args": {"timeout": 60}} if where.startswith("sqlite") else {}
    return RDBStorage(
        where,
        engine_kwargs=waits,
        heartbeat_interval=heartbeat,
        grace_period=SILENT_INTERVALS * heartbeat,
        failed_trial_callback=RetryFailedTrialCallback(max_retry=RETRIES),
    )


def _command(name: str) -> type[Job[Any]]:
    """The job of a command of this package."""
    with errors_of("target.command"):
        if name not in COMMANDS:
            raise ValueError(unknown_word("command", name, COMMANDS))
        for each in vars(importlib.import_module(COMMANDS[name][0])).values():
            if isinstance(each, type) and issubclass(each, Job) and vars(each).get("name") == name:
                return each
        raise ValueError(f"got {name!r}; expected a command that trains")


main = partial(drive, Tune)
