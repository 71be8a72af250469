"""One driver for every job: command line, folder, stop rules, signals, checkpoints, exit codes.

A job defines its own work. Its loop calls a pulse wherever a checkpoint would be exact, and ends
when the pulse returns False. Nothing else connects the two.
"""

from __future__ import annotations

import argparse
import json
import signal
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import yaml

from resgym.cli import OneLineParser
from resgym.files import remove_unfinished
from resgym.texts import printable
from resgym.trust import add_trust, command_line
from sb3_ext.config.checks import ConfigError, shown
from sb3_ext.config.sections import ConfigFile, read_mapping
from sb3_ext.runs.checkpoint import (
    checkpoint_errors,
    checkpoint_name,
    list_checkpoints,
    read_checkpoint,
    save_checkpoint,
)
from sb3_ext.runs.command import (
    Report,
    RunSignals,
    add_options,
    command,
    reporter,
    torch_threads,
)
from sb3_ext.runs.files import (
    FolderInUseError,
    RunFolder,
    going_on_without,
    provenance,
    write_durably,
)
from sb3_ext.runs.stopping import Ended, StopRules, read_stop_rules
from sb3_ext.types import StateDict

C = TypeVar("C", bound=ConfigFile)


class Used(NamedTuple):
    """What a job has used of its budgets, over all its resumes.

    Attributes:
        updates: gradient updates.
        timesteps: transitions.
        steps: what its checkpoints count; None: updates.
        episodes: episodes, if the job counts them.
    """

    updates: int = 0
    timesteps: int = 0
    steps: int | None = None
    episodes: int = 0

    @property
    def place(self) -> int:
        """The number of a checkpoint that is written now."""
        return self.updates if self.steps is None else self.steps


class Pulse(Protocol):
    """The driver's half of a loop."""

    def __call__(self, used: Used, *, exact: bool = True, **metrics: float) -> bool:
        """Takes note of what was used and measured; False: the loop has to end.

        Args:
            used: so far.
            exact: a job that begins anew with its `Job.state` of now would continue the same way.
            metrics: what was measured since the last call, by the names in `Job.metrics`.
        """


@dataclass
class Run:
    """What a job may use of the driver.

    Attributes:
        folder: it alone writes there; None: nothing is kept.
        say: prints a line of progress.
        given: the command line.
        interrupted: a signal came, so that the end must not take long.
    """

    folder: Path | None = None
    say: Report = lambda line: None
    given: argparse.Namespace = field(default_factory=argparse.Namespace)
    interrupted: bool = False


class Job(ABC, Generic[C]):
    """Work with a configuration, a folder and an end; constructing it does not train yet."""

    name: ClassVar[str]
    about: ClassVar[str]
    examples: ClassVar[str] = ""
    Config: ClassVar[type[ConfigFile]]
    file: ClassVar[tuple[str, str | None]] = ("--config", None)
    """The option that names the configuration, and its default."""
    rules: ClassVar[tuple[str, ...]] = ("max_updates", "max_timesteps", "max_seconds", "until")
    shared: ClassVar[tuple[str, ...]] = ("--set", "--stop", "--threads", "--no-progress")
    """Options that several commands have."""
    metrics: Collection[str] | None = ()
    """What conditions of `--stop` may be about, known once the job is made; None: anything."""
    may_change: ClassVar[frozenset[str]] = frozenset()
    """Dotted keys of the configuration that may be others when a run continues."""
    resumes: ClassVar[bool] = False
    """``--resume FOLDER`` continues it, with the configuration there, or else the same command."""
    every: int = 500
    """Updates, or steps, between two checkpoints."""
    keep: int = 2
    """Checkpoints that stay."""

    def __init__(self, config: C, run: Run) -> None:
        self.config, self.run_of = config, run

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        """Adds options of its own."""

    @classmethod
    def read(cls, given: argparse.Namespace) -> Any:
        """The configuration of a command line, or of the folder that it continues with."""
        file = given.config if given.resume is None else given.resume / "config.yml"
        if file is None:
            raise ConfigError(
                f"{cls.file[0]}: is missing; expected a file or one of "
                f"{', '.join(cls.Config.shipped())}"
            )
        settings = [*given.settings]
        if given.starts is not None:
            settings.append(f"game.starts={json.dumps(given.starts)}")
        return cls.Config.read(file, settings)

    @classmethod
    def place(cls, given: argparse.Namespace, config: Any) -> Path:
        """The folder of a run where the command line names none."""
        return Path("runs", cls.name, getattr(config, "name", ""))

    @classmethod
    def shows_progress(cls, given: argparse.Namespace, config: Any) -> bool:
        """Whether lines of progress are printed."""
        return not given.no_progress

    @property
    def state(self) -> StateDict | None:
        """Parts of a checkpoint; None: the job keeps what is finished by itself."""
        return None

    @state.setter
    def state(self, parts: StateDict) -> None:
        raise NotImplementedError

    @abstractmethod
    def run(self, pulse: Pulse) -> None:
        """Works until everything is done, or the pulse gives False."""

    @abstractmethod
    def report(self) -> str:
        """Writes the results and gives the last lines; also after a stop."""


def refuse_another(
    found: Any, about: Any, may_change: Collection[str], what: str, name: str = ""
) -> None:
    """Raises a ConfigError if two configurations differ in more than these dotted keys.

    Args:
        found: what is on the disk, plain data.
        about: what is wanted.
        may_change: keys, with all below them.
        what: the beginning of the message.
        name: dotted name of the values, empty for whole configurations.
    """
    if name in may_change or found == about:
        return
    if not (isinstance(found, Mapping) and isinstance(about, Mapping)):
        raise ConfigError(
            f"{what} another {name}: got {shown(about)}; expected {shown(found)}, or another folder"
        )
    for key in {**found, **about}:
        inner = f"{name}.{key}".lstrip(".")
        refuse_another(found.get(key), about.get(key), may_change, what, inner)


def beat(pulse: Pulse, used: Used, *, exact: bool = False, **metrics: float) -> None:
    """Give a pulse, and raise `Ended` if the run must stop; a job lets it pass."""
    if not pulse(used, exact=exact, **metrics):
        raise Ended


def go(job: Job[Any], pulse: Pulse = lambda used, **more: True) -> str:
    """Runs a job from Python; returns its report."""
    with suppress(Ended):
        job.run(pulse)
    return job.report()


def drive(job: type[Job[Any]], arguments: Sequence[str] | None = None) -> int:
    """Runs a job from a command line.

    Returns:
        0: done, or ended by a rule; 1: training or writing failed; 2: an argument or file is
        invalid; 130, 143 and 129: Ctrl-C, SIGTERM and SIGHUP,
        after a checkpoint.
    """
    kept = "stopped; finished work is kept, and the same command continues"
    said = "interrupted" if job.resumes else kept
    return command(job.name, interrupted=said)(partial(_drive, job))(arguments)


def parser_of(job: type[Job[Any]]) -> argparse.ArgumentParser:
    """The command line of a job."""
    parser = OneLineParser(
        prog=f"python -m sb3_ext {job.name}",
        description=job.about,
        epilog=job.examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(resume=None, starts=None, threads=None)  # where a job has no such option
    flag, default = job.file
    known = f"a YAML file, or one of {', '.join(job.Config.shipped())}"
    parser.add_argument(*flag.split(), dest="config", metavar="FILE", default=default, help=known)
    job.options(parser)
    add_options(parser, *job.shared)
    add_trust(parser)
    parser.add_argument("--out", type=Path, help="folder of the run")
    if job.resumes:
        parser.add_argument(
            "--resume", type=Path, metavar="FOLDER", help="resume the run in this folder"
        )
    parser.add_argument(
        "--dry-run", action="store_true", help="build everything, print it and stop"
    )
    return parser


def _drive(job: type[Job[Any]], arguments: Sequence[str]) -> int:
    given = parser_of(job).parse_args(arguments)
    resume = given.resume
    if resume is not None and (given.out, given.config) != (None, None):
        raise ConfigError("--resume: got --out or --config too; expected --resume alone")
    with (
        torch_threads(given.threads),
        command_line(given.trust, given.config),
        ExitStack() as locked,
    ):
        rules = read_stop_rules(given.stop, job.rules) if given.stop else None
        folder = None
        if resume is not None:
            folder = locked.enter_context(RunFolder(resume, "--resume"))
            if not (resume / "config.yml").is_file():
                raise ConfigError(
                    f"--resume: got {resume}, which is not a run; expected the folder of a run"
                )
        config = job.read(given)
        place = resume or given.out or job.place(given, config)
        while folder is None and not given.dry_run:
            try:
                folder = locked.enter_context(RunFolder(place))
            except FolderInUseError:  # somebody may have been faster to take a new one
                taken, place = place, given.out or job.place(given, config)
                if place == taken:
                    raise
        driver = None
        try:
            if folder is not None and resume is None:
                _check_folder(job, place)
            say = reporter(job.shows_progress(given, config))
            made = job(config, Run(place.absolute(), say, given))
            if rules is not None and made.metrics is not None:
                rules.check_fields(made.metrics)
            if given.dry_run:
                print(yaml.safe_dump(made.config.to_dict(), sort_keys=False).rstrip())
                return 0
            driver = _Driver(made, place, rules)
            return driver.go()
        except BaseException:
            # Nothing was trained. Other jobs may have kept finished work before a first pulse.
            if folder and (not driver or (job.resumes and driver.used == Used())):
                folder.discard()
            raise


def _check_folder(job: type[Job[Any]], place: Path) -> None:
    """Refuses a folder that is not empty, unless it may be that of the same run."""
    if (place / "config.yml").exists():
        if job.resumes:
            raise ConfigError(
                f"out: {place} already contains a run; expected another folder, or --resume {place}"
            )
    elif any(
        not each.name.startswith((".lock", "config.yml."))  # which a killed process left
        for each in place.iterdir()
    ):
        raise ConfigError(f"out: got {place}, which contains other files; expected a new folder")


@dataclass
class _Driver:
    """The pulse of a job that a command line runs.

    Attributes:
        code: exit code.
        reason: why it ends before the job is done; empty while it does not.
        wanted: a signal asked for a checkpoint.
        used: what the job has used so far.
        saved: number of the newest checkpoint; -1 without one.
        tried: the same of the last one that was begun: a full disk is tried again when due.
    """

    job: Job[Any]
    place: Path
    rules: StopRules | None
    code: int = 0
    reason: str = ""
    wanted: bool = False
    used: Used = field(default_factory=Used)
    saved: int = -1
    tried: int = 0

    def go(self) -> int:
        self._enter()
        try:
            with RunSignals(self._stop, partial(setattr, self, "wanted", True)), suppress(Ended):
                self.job.run(self)
        except FloatingPointError as error:
            raise FloatingPointError(f"{error}; what was saved is in {self.place}") from None
        self._save()
        print(printable(self.job.report(), "\n"))
        if self.reason:
            again = "--resume" if self.job.resumes else "the same command with --out"
            print(f"{self.job.name} ends: {self.reason}; {again} {self.place} continues there")
        return self.code

    def __call__(self, used: Used, *, exact: bool = True, **metrics: float) -> bool:
        self.used = used
        if self.rules is not None:
            self.rules.observe(metrics)
            if self.rules.ended(
                max_updates=used.updates,
                max_timesteps=used.timesteps,
                max_episodes=used.episodes,
            ):
                self.reason = self.reason or str(self.rules.reason)
        if exact and (self.wanted or used.place - self.tried >= self.job.every):
            self.wanted = False
            with going_on_without("checkpoint", self.place):
                self._save()
        return not self.reason

    def _enter(self) -> None:
        """Refuses the folder of another run; continues from the newest checkpoint."""
        job, path = self.job, self.place / "config.yml"
        text = yaml.safe_dump(job.config.to_dict(), sort_keys=False)
        about = yaml.safe_load(text)
        if path.exists():
            refuse_another(
                read_mapping(path), about, job.may_change, f"out: {self.place} holds a run with"
            )
        remove_unfinished(self.place)
        if list_checkpoints(self.place / "checkpoints"):
            newest, parts = read_checkpoint(self.place / "checkpoints")
            with checkpoint_errors(str(newest)):
                job.state = parts
            job.run_of.say(f"resuming from {newest}")
            self.saved = self.tried = int(newest.stem.split("-")[-1])
        write_durably(path, text)
        launch = {"from": self.tried, **provenance(about.get("seed"))}
        RunFolder(self.place).append("runs.jsonl", launch)

    def _stop(self, received: signal.Signals) -> None:
        self.reason, self.code = received.name, 128 + received
        self.job.run_of.interrupted = True

    def _save(self) -> None:
        self.tried, state = self.used.place, self.job.state
        if state is not None and self.used.place > self.saved:
            path = self.place / "checkpoints" / checkpoint_name(self.used.place)
            save_checkpoint(path, state, keep_last=self.job.keep)
            self.saved = self.used.place
