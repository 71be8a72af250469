"""Search hyperparameters with Optuna, with one worker or many.

A trial is a command of this package with sampled values; the study reads its metrics. The same
command once more, here or on another machine with the same storage, adds a worker.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import time
import warnings
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import optuna
import sqlalchemy.exc
import yaml
from annotated_types import Le, Len
from filelock import FileLock
from optuna.exceptions import OptunaError, TrialPruned
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler, RandomSampler
from optuna.storages import RDBStorage, RetryFailedTrialCallback, fail_stale_trials
from optuna.trial import FrozenTrial, TrialState
from pydantic import model_validator

from resgym.trust import packaged
from sb3_ext.__main__ import COMMANDS
from sb3_ext.config.checks import (
    REFUSALS,
    ConfigError,
    Registry,
    errors_of,
    from_data,
    one_line,
    unknown_word,
)
from sb3_ext.config.sections import ConfigFile, Count, Name, PositiveCount, Section, accepted_by
from sb3_ext.runs.driver import Job, Pulse, Run, Used, drive, parser_of
from sb3_ext.runs.files import write_text_durably
from sb3_ext.runs.stopping import Ended

ERROR = "error"
"""Attribute of a trial that failed by its settings: what was wrong."""
SILENT_INTERVALS = 6
"""A worker without a heartbeat for this many intervals counts as dead."""
RETRIES = 3
"""A trial whose workers died more often than this is left."""
_LOOK_SECONDS = 0.3


SAMPLERS: Registry[type[BaseSampler]] = Registry("sampler")
PRUNERS: Registry[type[BasePruner]] = Registry("pruner")
SAMPLERS.update(random=RandomSampler, tpe=optuna.samplers.TPESampler)
PRUNERS.update(
    halving=optuna.pruners.SuccessiveHalvingPruner,
    median=optuna.pruners.MedianPruner,
    none=optuna.pruners.NopPruner,
)


class Target(Section):
    """A command, its configuration, and the other options that it needs."""

    command: str
    config: str
    player: str | None = None
    role: Literal["host", "agent"] | None = None
    algo: str | None = None
    env: str | None = None

    def words(self, file: str) -> list[str]:
        """Its command line, with this configuration."""
        name = {"attack": "budget", "train": "conf-file"}.get(self.command, "config")
        given = {name: file, "role": self.role, "algo": self.algo, "env": self.env}
        words = [f"--{name}={value}" for name, value in given.items() if value is not None]
        return words if self.player is None else [*words, "--", self.player]


class StudyConfig(ConfigFile):
    """A whole study."""

    folder: ClassVar[str] = "tune"

    name: Name
    """name of the study in its storage"""
    target: Target
    """the command, its configuration and options"""
    value: Annotated[list[str], Len(1)]
    """metrics of the command; the worst of them counts"""
    settings: dict[str, Any] = {}  # noqa: RUF012
    """dotted keys of the configuration with the same value in every trial"""
    direction: Literal["maximize", "minimize"]
    """larger or smaller values are better"""
    search: Annotated[dict[str, Any], Len(1)]
    """dotted keys of the configuration, each with a range or choices"""
    trials: PositiveCount
    """trials of all workers together"""
    sampler: Annotated[dict[str, Any], accepted_by(partial(from_data, SAMPLERS, "name"))]
    """name of one of Optuna's samplers, with its arguments"""
    pruner: Annotated[dict[str, Any], accepted_by(partial(from_data, PRUNERS, "name"))]
    """name of one of Optuna's pruners, with its arguments"""
    seed: Annotated[Count, Le(2**32 - 1)]
    """seed of the sampled values"""

    @model_validator(mode="after")
    def _fits(self) -> StudyConfig:
        if both := self.settings.keys() & self.search.keys():
            raise ValueError(f".settings: {min(both)} is a key of search, too")
        self.some()
        return self

    def some(self) -> dict[str, Any]:
        """The searched keys with values that are allowed."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        return self.suggest(optuna.create_study(sampler=RandomSampler(self.seed)).ask())

    def suggest(self, trial: Any) -> dict[str, Any]:
        """The searched keys of a trial; those of a finished one are the same again."""
        found = {}
        for name, each in self.search.items():
            with errors_of(f"search.{name}"):
                found[name] = _suggested(trial, name, **each)
        return found

    def worst(self, measured: Mapping[str, float]) -> float:
        """The value of a trial that measured all it should."""
        return (min if self.direction == "maximize" else max)(measured[n] for n in self.value)

    def make_sampler(self, trial: int) -> Any:
        """A sampler whose draws depend on the seed and the number of the trial alone."""
        words = np.random.SeedSequence([self.seed, trial]).generate_state(1)
        return from_data(SAMPLERS, "name", {**self.sampler, "seed": int(words[0])})


def _suggested(trial: Any, name: str, choices: Any = None, **bounds: Any) -> Any:
    """A value from a range, whole if all given numbers are whole, or one of several.

    Lists and mappings are shown and kept as JSON.
    """
    if choices is None:
        whole = all(isinstance(each, int) for each in bounds.values())
        return (trial.suggest_int if whole else trial.suggest_float)(name, **bounds)
    shown = [json.dumps(v) if isinstance(v, (dict, list)) else v for v in choices]
    return choices[shown.index(trial.suggest_categorical(name, shown))]


def counts(trial: FrozenTrial) -> bool:
    """Whether it is one of the trials that the study shall have.

    Trials that were given up are tried again under another number and do not count themselves.
    """
    return trial.state is not TrialState.FAIL or ERROR in trial.user_attrs


class Tune(Job[StudyConfig]):
    """Search hyperparameters: run a study, or one worker of it."""

    name = "tune"
    about = __doc__ or ""
    examples = """\
examples:
  python -m sb3_ext.tune train
  python -m sb3_ext.tune attack --storage postgresql://host/studies --set trials=100
"""
    Config = StudyConfig
    file = ("config", None)
    rules = ("max_seconds",)
    may_change = frozenset({"trials"})
    alone = False

    def __init__(self, config: StudyConfig, run: Run) -> None:
        super().__init__(config, run)
        # A key that does not exist or a wrong type is found now, not in every trial.
        with errors_of("target, settings or search"):
            self._job(config.some())
        self._stopped = False

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        """Adds the study, and who works on it."""
        add = parser.add_argument
        text = "Optuna's storage, such as postgresql://... (default: an SQLite file in the folder)"
        add("--storage", help=text)
        add("--trials", type=int, help="trials of all workers together (default: as in the file)")
        text = "seconds between heartbeats; a worker that misses six counts as dead (default 10)"
        add("--heartbeat", type=int, default=10, metavar="SECONDS", help=text)

    @classmethod
    def changes(cls, given: argparse.Namespace) -> list[str]:
        """Of the number of trials."""
        return [] if given.trials is None else [f"trials={given.trials}"]

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

    def _goes_on(self, pulse: Pulse) -> bool:
        self._stopped |= not pulse(Used(), exact=False)
        return not self._stopped

    def _work(self, pulse: Pulse) -> None:
        while self._goes_on(pulse):
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
        for each in vars(packaged(COMMANDS[name][0])).values():
            if isinstance(each, type) and issubclass(each, Job) and vars(each).get("name") == name:
                return each
        raise ValueError(f"got {name!r}; expected a command that trains")


main = partial(drive, Tune)
