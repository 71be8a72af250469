"""One driver for every job: command line, folder, stop rules, signals, checkpoints, exit codes.

A job says what is its own. Its loop calls a pulse wherever a checkpoint would be exact, and ends
when the pulse gives False; more does not tie the two together.
"""

from __future__ import annotations

import argparse
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import yaml

from resgym.cli import OneLineParser
from resgym.trust import add_trust, command_line
from sb3_ext.checkpoints.checkpoint import (
    checkpoint_name,
    list_checkpoints,
    read_checkpoint,
    save_checkpoint,
)
from sb3_ext.config.checks import shown
from sb3_ext.config.reading import ConfigFile, read_mapping
from sb3_ext.config.sections import ConfigError
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import FAILED, Report, add_options, reporter, torch_threads
from sb3_ext.runs.folder import RunFolder
from sb3_ext.runs.provenance import provenance
from sb3_ext.runs.signals import RunSignals
from sb3_ext.runs.stopping import StopRules, read_stop_rules

C = TypeVar("C", bound=ConfigFile)
KEPT = 2
"""Checkpoints that stay: the last one, and the one before it."""


class Used(NamedTuple):
    """What a job has used of its budgets, over all its resumes."""

    updates: int = 0
    timesteps: int = 0


class Pulse(Protocol):
    """The driver's half of a loop."""

    def __call__(self, used: Used, *, exact: bool = True, **metrics: float) -> bool:
        """Takes note of what was used and measured; False: the loop has to end.

        Args:
            used: so far.
            exact: a job that begins anew with its `Job.state` of now would go on the same way.
            metrics: what was measured since the last call, by the names in `Job.metrics`.
        """


@dataclass
class Run:
    """What a job may use of the driver.

    Attributes:
        folder: it alone writes there; None: nothing is kept.
        say: prints a line of progress.
        given: the command line.
    """

    folder: Path | None = None
    say: Report = lambda line: None
    given: argparse.Namespace = field(default_factory=argparse.Namespace)


class Job(ABC, Generic[C]):
    """Work with a configuration, a folder and an end; its constructor trains and writes nothing."""

    name: ClassVar[str]
    about: ClassVar[str]
    examples: ClassVar[str] = ""
    Config: ClassVar[type[ConfigFile]]
    rules: ClassVar[tuple[str, ...]] = ("max_updates", "max_timesteps", "max_seconds", "until")
    metrics: ClassVar[tuple[str, ...]] = ()
    may_change: ClassVar[frozenset[str]] = frozenset()
    """Keys of `identity` that may be others when the same command goes on."""
    alone: ClassVar[bool] = True
    """Only one process may work in its folder."""
    checkpoint_updates: ClassVar[int] = 500

    def __init__(self, config: C, run: Run) -> None:
        self.config, self.run_of = config, run

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        """Adds options of its own."""

    @classmethod
    def read(cls, given: argparse.Namespace) -> Any:
        """The configuration that a command line means."""
        return cls.Config.read(given.config, given.settings)

    @classmethod
    def place(cls, given: argparse.Namespace, config: Any) -> Path:
        """The folder of a run where the command line names none."""
        return Path("runs", cls.name)

    def identity(self) -> dict[str, Any]:
        """What a folder holds a run of, as plain data; another one is refused."""
        return self.config.to_dict()

    @property
    def state(self) -> dict[str, Any] | None:
        """Parts of a checkpoint; None: the job keeps what is finished by itself."""
        return None

    @state.setter
    def state(self, parts: Mapping[str, Any]) -> None:
        raise NotImplementedError

    @abstractmethod
    def run(self, pulse: Pulse) -> None:
        """Works until everything is done, or the pulse gives False."""

    @abstractmethod
    def report(self) -> str:
        """Writes the results and gives the last lines; also after a stop."""


def go(job: Job[Any], pulse: Pulse = lambda used, **more: True) -> str:
    """Runs a job from Python; returns its report."""
    job.run(pulse)
    return job.report()


def drive(job: type[Job[Any]], arguments: Sequence[str] | None = None) -> int:
    """Runs a job from a command line.

    Returns:
        0: done, or ended by a rule; 1: training or writing failed; 2: something that was given is
        not valid; 130 and 143: Ctrl-C and SIGTERM, after a checkpoint.
    """
    said = "stopped; what is finished is kept, the same command goes on"
    return command(job.name, failed=FAILED, interrupted=said)(partial(_drive, job))(arguments)


def _drive(job: type[Job[Any]], arguments: Sequence[str]) -> int:
    parser = OneLineParser(
        prog=f"python -m sb3_ext.{job.name}",
        description=job.about,
        epilog=job.examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    job.options(parser)
    add_options(parser, "--set", "--stop", "--threads", "--no-progress")
    add_trust(parser)
    parser.add_argument("--out", type=Path, help="folder of the run")
    parser.add_argument("--dry-run", action="store_true", help="print the configuration and end")
    given = parser.parse_args(arguments)
    file = getattr(given, "config", None)
    with torch_threads(given.threads), command_line(given.trust, file):
        rules = read_stop_rules(given.stop, job.rules, job.metrics)
        config = job.read(given)
        place = given.out or job.place(given, config)
        with RunFolder(place) if job.alone and not given.dry_run else nullcontext():
            made = job(config, Run(place, reporter(not given.no_progress), given))
            if given.dry_run:
                print(yaml.safe_dump(made.identity(), sort_keys=False), end="")
                return 0
            return _Driver(made, place, rules).go()


class _Driver:
    """The pulse of a job that a command line runs."""

    def __init__(self, job: Job[Any], place: Path, rules: StopRules | None) -> None:
        self.job, self.place, self.rules = job, place, rules
        self.code, self.reason = 0, ""
        self.wanted = False
        self.used, self.saved = Used(), -1

    def go(self) -> int:
        self._enter()
        with RunSignals(self._stop, self._want):
            self.job.run(self)
        self._save()
        print(self.job.report())
        if self.reason:
            again = f"the same command goes on from what is in {self.place}"
            print(f"{self.job.name} ends: {self.reason}; {again}")
        return self.code

    def __call__(self, used: Used, *, exact: bool = True, **metrics: float) -> bool:
        self.used = used
        if self.rules is not None:
            self.rules.observe(metrics)
            if self.rules.ended(max_updates=used.updates, max_timesteps=used.timesteps):
                self.reason = self.reason or str(self.rules.reason)
        if exact and (
            self.wanted or used.updates - max(self.saved, 0) >= self.job.checkpoint_updates
        ):
            self._save()
        return not self.reason

    def _enter(self) -> None:
        """Refuses the folder of another run; goes on from the newest checkpoint."""
        folder, about = RunFolder(self.place), yaml.safe_load(yaml.safe_dump(self.job.identity()))
        path = self.place / "config.yml"
        if path.exists():
            found = read_mapping(path)
            for key in {**about, **found}.keys() - self.job.may_change:
                if found.get(key) != about.get(key):
                    raise ConfigError(
                        f"out: {self.place} holds a run with another {key}: got "
                        f"{shown(about.get(key))}; expected {shown(found.get(key))}, or another "
                        "folder"
                    )
        elif self.job.alone and any(each.name != ".lock" for each in self.place.iterdir()):
            raise ConfigError(f"out: got {self.place}, which holds other files; expected a new one")
        if list_checkpoints(self.place / "checkpoints"):
            newest, parts = read_checkpoint(self.place / "checkpoints")
            self.job.state = parts
            self.job.run_of.say(f"going on from {newest}")
            self.saved = int(newest.name.split("-")[-1])
        self.place.mkdir(parents=True, exist_ok=True)
        folder.write_yaml("config.yml", about)
        origin = provenance(about.get("seed"))
        folder.append("runs.jsonl", {"updates": max(self.saved, 0), **origin})

    def _stop(self, received: signal.Signals) -> None:
        self.reason, self.code = received.name, 128 + received

    def _want(self) -> None:
        self.wanted = True

    def _save(self) -> None:
        state = self.job.state
        if state is not None and self.used.updates > self.saved:
            path = self.place / "checkpoints" / checkpoint_name(self.used.updates)
            save_checkpoint(path, state, keep_last=KEPT)
            self.saved = self.used.updates
        self.wanted = False
