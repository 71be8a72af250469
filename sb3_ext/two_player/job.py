"""The command ``python -m sb3_ext two_player``: a trainer as a job, and the files of its folder."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from stable_baselines3.common.logger import TensorBoardOutputFormat

from sb3_ext.adapter.seam import tell_buffer
from sb3_ext.callbacks.watching import entropy_of_counts
from sb3_ext.checkpoints.models import save_model, save_player
from sb3_ext.config.checks import ConfigError, errors_of
from sb3_ext.runs.driver import Job, Pulse, Run, Used, drive, refuse_another
from sb3_ext.runs.files import RunFolder, going_on_without, write_durably, write_json
from sb3_ext.runs.stopping import Ended
from sb3_ext.two_player.config import TrainerConfig, smoke_version
from sb3_ext.two_player.trainer import Evaluation, HostAgentTrainer
from sb3_ext.types import Metrics, StateDict


class TwoPlayer(Job[TrainerConfig]):
    """The output of a run of `HostAgentTrainer`."""

    name = "two_player"
    about = "Train a host and an agent against each other."
    Config = TrainerConfig
    shared = ("--set", "--starts", "--stop", "--no-progress")
    may_change = frozenset(("training.steps", "logging", "checkpoint", "compute"))
    resumes = True

    def __init__(self, config: TrainerConfig, run: Run) -> None:
        super().__init__(config, run)
        given = vars(run.given)
        if config.logging.tensorboard and find_spec("tensorboard") is None:
            raise ConfigError("logging.tensorboard: got true; expected false without tensorboard")
        self.trainer = HostAgentTrainer(config, folder=run.folder)
        self.metrics = {"steps", *(f"rho/{pair}" for pair in self.trainer.pairs())}
        if config.checkpoint is not None:
            self.every = config.checkpoint.every_steps
            self.keep = config.checkpoint.keep
        if given.get("init_from") is not None:
            with errors_of("--init-from"):
                self.trainer.init_from(given["init_from"])
        for role, learner in self.trainer.roles.items():
            with errors_of(f"roles.{role}.replay_buffer.size"):
                if not given.get("dry_run"):
                    tell_buffer(learner.model, "allocate")
        self._files: Any = None
        self._tensorboard: Any = None

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        """Adds what is short for some keys of the configuration."""
        add = parser.add_argument
        add("--steps", type=int, help="set training.steps")
        add(
            "--init-from",
            type=Path,
            metavar="FOLDER",
            help="start from the networks of a run's folder",
        )
        add("--smoke", action="store_true", help="run a few steps of every part, in seconds")

    @classmethod
    def read(cls, given: argparse.Namespace) -> TrainerConfig:
        """With the setting for ``--steps``; made short by ``--smoke``."""
        if given.steps is not None:
            given.settings = [*given.settings, f"training.steps={given.steps}"]
        config: TrainerConfig = super().read(given)
        return smoke_version(config) if given.smoke else config

    @classmethod
    def place(cls, given: argparse.Namespace, config: TrainerConfig) -> Path:
        """A folder for each name."""
        return Path("runs", config.name)

    @property
    def state(self) -> StateDict | None:
        """See `HostAgentTrainer.state_dict`; None without checkpoints."""
        return None if self.config.checkpoint is None else self.trainer.state_dict()

    @state.setter
    def state(self, parts: StateDict) -> None:
        what = f"--resume: {self.run_of.folder}/config.yml was changed: its checkpoint has"
        refuse_another(parts["trainer"]["config"], self.config.to_dict(), self.may_change, what)
        self.trainer.load_state_dict(parts)

    @property
    def used(self) -> Used:
        """Updates and transitions of both roles together."""
        learners = self.trainer.roles.values()
        updates = sum(learner.updates for learner in learners)
        transitions = sum(learner.transitions for learner in learners)
        return Used(updates, transitions, self.trainer.total_steps)

    def run(self, pulse: Pulse) -> None:
        """Makes the steps that are left."""
        trainer = self.trainer
        self._begin()

        def after_step(trainer: HostAgentTrainer) -> bool:
            metrics: Any = {"steps": float(trainer.total_steps)}
            for newest in trainer.history[-1:]:
                if newest.step == trainer.total_steps:
                    metrics |= newest.metrics
            continues = pulse(self.used, **metrics)
            if self.run_of.interrupted:  # to measure the players may take too long
                raise Ended
            return continues

        continues = pulse(self.used, exact=False)
        if not self.run_of.interrupted:
            left = max(self.config.training.steps - trainer.total_steps, 0)
            trainer.train(left if continues else 0, callback=after_step)

    def _begin(self) -> None:
        """Drops what a killed process wrote of later steps than its checkpoint's."""
        if self.run_of.folder is None:
            return
        self._files, self.trainer.output = RunFolder(self.run_of.folder), self
        self._files.keep_lines_until("metrics.jsonl", self.trainer.total_steps)
        self._write_evaluations()
        if self.config.logging.tensorboard:
            self._tensorboard = TensorBoardOutputFormat(str(self._files.path / "tensorboard"))

    def _write_evaluations(self) -> None:
        lines = [f"{json.dumps(asdict(each))}\n" for each in self.trainer.history]
        write_durably(self._files.path / "evaluations.jsonl", "".join(lines))

    def add_metrics(self, metrics: Metrics) -> None:
        """Appends a line of metrics."""
        self._files.append("metrics.jsonl", {"step": self.trainer.total_steps, **metrics})
        self._show(metrics)

    def add_evaluation(self, evaluation: Evaluation) -> None:
        """Writes down a measurement, and the versions that are the best so far."""
        self.run_of.say(f"step {evaluation.step}: {evaluation.values}")
        path = self._files.path
        with going_on_without("line", path / "evaluations.jsonl"):
            self._write_evaluations()
        entropies = {
            f"{role}/action_entropy": entropy_of_counts(counts)
            for role, counts in evaluation.actions.items()
        }
        self._show(evaluation.metrics | entropies)
        for role in evaluation.improved if self.config.evaluation.keep_best else ():
            model = self.trainer.roles[role].model
            with going_on_without("best version", path / "best" / role):
                save_player(path / "best" / role, model, asdict(evaluation))

    def _show(self, values: Metrics) -> None:
        if self._tensorboard is not None:
            # Nothing is excluded anywhere.
            self._tensorboard.write(values, dict.fromkeys(values, ()), self.trainer.total_steps)

    def report(self) -> str:
        """Writes the last models and a summary, which is what is said."""
        trainer = self.trainer
        summary = {
            "steps": trainer.total_steps,
            "updates": {role: each.updates for role, each in trainer.roles.items()},
            "last": asdict(trainer.history[-1]) if trainer.history else None,
            "best_scores": trainer.best_scores,
            "seconds": dict(trainer.seconds),
        }
        if self._files is not None:
            for role, learner in trainer.roles.items():
                save_model(self._files.path / "models" / f"{role}.zip", learner.model)
            write_json(self._files.path / "summary.json", summary)
        if self._tensorboard is not None:
            self._tensorboard.close()
        trainer.close()
        said = yaml.safe_dump(summary, sort_keys=False, default_flow_style=None)
        return f"{said}results are in {self.run_of.folder}"


main = partial(drive, TwoPlayer)
