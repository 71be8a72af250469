"""Search hyperparameters with Optuna, with one worker or many.

A trial is a command of this package with sampled values; the study reads its metrics. The same
command once more, here or on another machine with the same storage, adds a worker.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shlex
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
from optuna.exceptions import OptunaError, TrialPruned
from optuna.storages import RDBStorage, RetryFailedTrialCallback, fail_stale_trials
from optuna.trial import FrozenTrial, TrialState

from sb3_ext.__main__ import COMMANDS
from sb3_ext.config.checks import one_line, unknown_word
from sb3_ext.config.reading import shipped_configs
from sb3_ext.config.sections import REFUSALS, ConfigError, errors_of, from_data
from sb3_ext.runs.driver import Job, Pulse, Run, Used, drive, parser_of
from sb3_ext.runs.files import write_text_durably
from sb3_ext.runs.stopping import Ended
from sb3_ext.tune.study import PRUNERS, StudyConfig

ERROR = "error"
"""Attribute of a trial that failed by its settings: what was wrong."""
SILENT_INTERVALS = 6
"""A worker without a heartbeat for this many intervals counts as dead."""
RETRIES = 3
"""A trial whose workers died more often than this is left."""
_LOOK_SECONDS = 0.3


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
  python -m sb3_ext.tune train
  python -m sb3_ext.tune attack --storage postgresql://host/studies --set trials=100
"""
    Config = StudyConfig
    rules = ("max_seconds", "until")
    metrics = ("best", "trials", "value")
    may_change = frozenset({"trials"})
    alone = False

    def __init__(self, config: StudyConfig, run: Run) -> None:
        super().__init__(config, run)
        # A key that does not exist or a wrong type is found now, not in every trial.
        with errors_of("target, settings or search"):
            self._job(config.some())
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
        text = "seconds between heartbeats; a worker that misses six counts as dead (default 10)"
        add("--heartbeat", type=int, default=10, metavar="SECONDS", help=text)

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
        given = parser_of(job).parse_args([*words, *target.words(target.config)])
        return job(job.read(given), Run(None, given=given, common=self.run_of.folder))

    def run(self, pulse: Pulse) -> None:
        """Tries until this many trials are finished by all workers, or until it is stopped."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is experimental, and steps reported twice
            try:
                with FileLock(Path(self.run_of.folder or ".", "study.lock")):  # tables: once
                    self._open()
                self._work(pulse)
            except (OptunaError, sqlalchemy.exc.SQLAlchemyError) as error:
                raise RuntimeError(f"storage: {one_line(error)}") from error

    def _open(self) -> None:
        given, config = self.run_of.given, self.config
        where = given.storage or f"sqlite:///{self.run_of.folder}/study.db"
        with errors_of("storage: " + where):
            try:
                storage = RDBStorage(
                    where,
                    engine_kwargs={"connect_args": {"timeout": 60}} if "sqlite" in where else {},
                    heartbeat_interval=given.heartbeat,
                    grace_period=SILENT_INTERVALS * given.heartbeat,
                    failed_trial_callback=RetryFailedTrialCallback(max_retry=RETRIES),
                )
            except (ImportError, OSError, sqlalchemy.exc.SQLAlchemyError) as error:
                raise ValueError(one_line(error)) from error
        self.study = optuna.create_study(
            storage=storage,
            study_name=config.name,
            direction=config.direction,
            pruner=from_data(PRUNERS, "name", config.pruner),
            load_if_exists=True,
        )
        wanted = json.loads(json.dumps({**config.to_dict(), "trials": None}))
        if self.study.user_attrs.get("study", wanted) != wanted:
            raise ConfigError(f"name: got {config.name!r}, which {where} holds another study of")
        self.study.set_user_attr("study", wanted)

    def _counted(self) -> list[FrozenTrial]:
        return [trial for trial in self.study.get_trials(deepcopy=False) if counts(trial)]

    def _goes_on(self, pulse: Pulse, **metrics: float) -> bool:
        self._stopped |= not pulse(Used(), exact=False, **metrics)
        return not self._stopped

    def _look(self, pulse: Pulse) -> bool:
        """Report what is new; return whether to continue."""
        finished = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        for trial in finished[self._seen :]:
            self._seen += 1
            found = {"value": float(trial.value or 0.0), "best": self.study.best_value}
            self._goes_on(pulse, trials=float(self._seen), **found)
        return self._goes_on(pulse)

    def _work(self, pulse: Pulse) -> None:
        while self._look(pulse):
            fail_stale_trials(self.study)
            known = self._counted()
            waiting = any(trial.state is TrialState.WAITING for trial in known)
            if waiting or len(known) < self.config.trials:
                with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
                    one = partial(self._try, pulse)
                    self.study.optimize(one, n_trials=1, catch=(Ended, *REFUSALS))
            elif all(trial.state.is_finished() for trial in known):
                return
            else:
                time.sleep(_LOOK_SECONDS)  # the last worker waits for the others

    def _try(self, pulse: Pulse, trial: optuna.Trial) -> float:
        """One trial: the worst of what its command measured last."""
        config, measured, pruned = self.config, dict[str, float](), False
        self.study.sampler = config.make_sampler(trial.number)
        earlier = self.study.get_trials(deepcopy=False)[: trial.number]
        if sum(map(counts, earlier)) >= config.trials:
            raise Ended  # another worker was quicker

        def told(used: Used, *, exact: bool = True, **metrics: float) -> bool:
            nonlocal pruned
            measured.update(metrics)
            if metrics.keys() & config.value and measured.keys() >= {*config.value}:
                trial.report(config.worst(measured), used.updates)
                pruned = pruned or trial.should_prune()
            return self._goes_on(pulse) and not pruned

        try:
            with suppress(Ended):
                self._job(config.suggest(trial)).run(told)
            if self._stopped:  # another worker repeats it
                self.study.enqueue_trial(trial.params)
                raise Ended
            if pruned:
                raise TrialPruned
            if missing := {*config.value} - measured.keys():
                raise ConfigError(f"value: {unknown_word('metric', min(missing), measured)}")
        except REFUSALS as error:
            said = f"{type(error).__name__}: {one_line(error)}"
            trial.set_user_attr(ERROR, said)
            self.run_of.say(f"trial {trial.number}: {said}")
            raise
        self.run_of.say(f"trial {trial.number}: {config.worst(measured):.4f}")
        return config.worst(measured)

    def report(self) -> str:
        """Writes what was found: a table and the best configuration."""
        folder = self.run_of.folder
        assert folder is not None
        frame = self.study.trials_dataframe(("number", "state", "value", "params", "user_attrs"))
        if frame.empty:
            return "no trials"
        write_text_durably(folder / "trials.csv", frame.to_csv(index=False))
        ascending = self.config.direction == "minimize"
        table = frame.sort_values("value", ascending=ascending).to_string(index=False, na_rep="")
        if TrialState.COMPLETE not in {trial.state for trial in self._counted()}:
            if not self._stopped:
                raise RuntimeError(f"no trial was finished\n{table}")
            return table
        best, path, target = self.study.best_trial, folder / "best.yml", self.config.target
        line = shlex.join(["python", "-m", f"sb3_ext.{target.command}", *target.words(str(path))])
        made = json.dumps(self._job(self.config.suggest(best)).identity())
        text = yaml.safe_dump(json.loads(made), sort_keys=False)
        heading = f"# Trial {best.number} of {self.study.study_name}, value {best.value:.6g}:\n"
        write_text_durably(path, f"{heading}# {line}\n{text}")
        return f"{table}\n\nresults are in {folder}; train with the best:\n{line}"


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
