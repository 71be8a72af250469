"""The command line: ``python -m sb3_ext.two_player --config small --out runs/first``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from resgym.cli import OneLineParser
from resgym.trust import add_trust, command_line
from sb3_ext.callbacks.watching import entropy_of_counts
from sb3_ext.checkpoints.checkpoint import is_checkpoint, list_checkpoints, load_checkpoint
from sb3_ext.config.checks import check_count
from sb3_ext.config.sections import ConfigError, errors_of
from sb3_ext.replay.buffers import reserve_memory
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import add_options, starts_setting
from sb3_ext.runs.folder import RunFolder
from sb3_ext.runs.signals import RunSignals
from sb3_ext.runs.stopping import StopRules, read_stop_rules
from sb3_ext.two_player.config import TrainerConfig, smoke_version
from sb3_ext.two_player.run_directory import Evaluation, RunDirectory
from sb3_ext.two_player.trainer import HostAgentTrainer

SHIPPED = ", ".join(TrainerConfig.shipped())


@command("two_player")
def main(arguments: Sequence[str]) -> int:
    """Trains as the command line says; returns the exit code.

    0: done, or stopped by SIGINT or SIGTERM with a checkpoint. Others as `command` says.
    """
    args = _parser().parse_args(arguments)
    args.settings = [*args.settings, *starts_setting(args.starts, "game.starts")]
    if args.steps is not None:
        check_count("--steps", args.steps)
    if args.resume is not None and args.out is not None:
        raise ConfigError("--out: a resumed run stays in its folder; give only --resume")
    if args.resume is None and args.config is None:
        raise ConfigError(f"--config is missing: a file or one of {SHIPPED}")
    if args.resume is not None:
        _checkpoints(args.resume, "--resume")
    # Before anything is read that may change.
    alone = args.resume is not None and not args.dry_run
    folder = RunFolder(args.resume, "--resume") if alone else nullcontext()
    with command_line(args.trust, args.config), folder:
        return _train(args, ["python", "-m", "sb3_ext.two_player", *arguments])


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m sb3_ext.two_player",
        description="Trains a host and an agent against each other.",
    )
    add = parser.add_argument
    add("--config", help=f"a YAML file, or one of {SHIPPED}; not needed with --resume")
    add("--steps", type=int, help="steps to make, instead of training.steps")
    add("--out", type=Path, help="folder of the run (default runs/<name>)")
    begin = parser.add_mutually_exclusive_group().add_argument
    text = "go on with the run in this folder, up to training.steps in all"
    begin("--resume", type=Path, metavar="DIR", help=text)
    text = "start from the networks of a run's folder"
    begin("--init-from", type=Path, metavar="DIR", help=text)
    add("--actors", type=int, metavar="N", help="processes on a Ray cluster that play the rollouts")
    add("--smoke", action="store_true", help="a few steps of everything, in seconds")
    add("--dry-run", action="store_true", help="build everything, train nothing")
    add_options(parser, "--set", "--starts", "--stop", "--no-progress")
    add_trust(parser)
    return parser


def _train(args: argparse.Namespace, given: Sequence[str]) -> int:
    rules = read_stop_rules(args.stop, ("max_updates", "max_timesteps", "max_seconds", "until"))
    state = None if args.resume is None else _saved_state(args.resume)
    config = _config(args, state)
    # First the trainer: what is refused by an algorithm or does not fit leaves no folder behind.
    trainer = HostAgentTrainer(config)
    if rules is not None:
        rules.check_fields({"steps", *trainer.measured})
    if args.dry_run:
        print(_description(trainer))
        trainer.close()
        return 0
    out = args.resume or args.out or Path("runs") / config.name
    if state is not None:
        trainer.load_state_dict(state)
    if args.init_from is not None:
        trainer.init_from(_checkpoints(args.init_from, "--init-from"))
    for role, learner in trainer.roles.items():
        with errors_of(f"roles.{role}.replay_buffer.size"):
            reserve_memory(learner.model)
    resumed_at = None if args.resume is None else trainer.total_steps
    output = trainer.output = RunDirectory(out, config, given, resumed_at=resumed_at)
    steps = args.steps or max(config.training.steps - trainer.total_steps, 0)
    look = None if rules is None else _Look(rules)
    if look is not None and not look(trainer):
        steps = 0
    try:
        with RunSignals(lambda _: trainer.request_stop(), trainer.request_checkpoint):
            trainer.train(steps, callback=look, progress=not args.no_progress)
    except FloatingPointError as error:
        raise FloatingPointError(f"{error}; the last good checkpoint is in {out}") from None
    finally:
        output.close()
        trainer.close()
    if trainer.history:
        print(_report(trainer, trainer.history[-1]))
    if steps and trainer.stopped:
        print(f"\nstopped after step {trainer.total_steps}; --resume {out} goes on from there")
    elif rules is not None and rules.reason is not None:
        print(f"\ntraining ends: {rules.reason}; --resume {out} goes on from there")
    print(f"\nresults are in {out}")
    return 0


class _Look:
    """Shows a trainer to rules after every step; what it gives is whether to go on.

    Updates and transitions are those of both roles together; metrics are the pairs of evaluations,
    such as ``rho/host-random``, and ``steps``.
    """

    def __init__(self, rules: StopRules) -> None:
        self.rules, self._seen = rules, 0

    def __call__(self, trainer: HostAgentTrainer) -> bool:
        for each in trainer.history[self._seen :]:
            self.rules.observe({f"{trainer.game.measure}/{k}": v for k, v in each.values.items()})
        self._seen = len(trainer.history)
        self.rules.observe({"steps": trainer.total_steps})
        learners = trainer.roles.values()
        return not self.rules.ended(
            max_updates=sum(learner.updates for learner in learners),
            max_timesteps=sum(learner.transitions for learner in learners),
        )


def _saved_state(run: Path) -> dict[str, Any] | None:
    """The newest state of a run; None if it was broken off before its first checkpoint."""
    folder = _checkpoints(run, "--resume")
    if list_checkpoints(folder) or is_checkpoint(folder):
        return load_checkpoint(folder)
    if not (run / "config.yml").is_file():
        raise ConfigError(f"--resume: there is no run in {run}")
    return None


def _config(args: argparse.Namespace, state: dict[str, Any] | None) -> TrainerConfig:
    if args.resume is None:
        config = _with_actors(TrainerConfig.read(args.config, args.settings), args.actors)
        return smoke_version(config) if args.smoke else config
    if state is None:
        saved = TrainerConfig.read(args.resume / "config.yml")
    else:
        saved = TrainerConfig.saved(state["trainer"]["config"], args.resume)
    if args.config is not None and TrainerConfig.read(args.config) != saved:
        raise ConfigError(
            f"--config: {args.config} differs from the configuration of the run in {args.resume}; "
            "leave it out to go on, or use --init-from to start a new run from its networks"
        )
    for setting in args.settings:
        # What a run depends on cannot be changed halfway through it.
        if not setting.startswith(("training.steps=", "logging.", "checkpoint.", "compute.")):
            raise ConfigError(
                f"--set {setting}: a resumed run may change only training.steps, logging, "
                "checkpoint and compute; use --init-from to start a new run from its networks"
            )
    actors = saved.collector.actors if saved.collector else 0
    if args.actors is not None and bool(args.actors) != bool(actors):
        raise ConfigError(f"--actors: the run that goes on has {actors}, got {args.actors}")
    return _with_actors(TrainerConfig.read(saved, args.settings), args.actors)


def _with_actors(config: TrainerConfig, actors: int | None) -> TrainerConfig:
    if actors is None:
        return config
    data = config.to_dict()
    return TrainerConfig.read(
        {**data, "collector": {**(data["collector"] or {}), "actors": actors}}
    )


def _checkpoints(folder: Path, option: str) -> Path:
    """The folder with checkpoints of a run's folder, which itself may be meant too."""
    if not folder.is_dir():
        raise ConfigError(f"{option}: there is no folder {folder}")
    inner = folder / "checkpoints"
    return inner if inner.is_dir() else folder


def _description(trainer: HostAgentTrainer) -> str:
    config = trainer.config
    lines = [
        f"{config.name}: {config.training.steps} steps of {', '.join(config.training.players)}"
    ]
    for role, learner in trainer.roles.items():
        model = learner.model
        network = sum(
            value.numel()
            for name, value in learner.policy.named_parameters()
            if "_target." not in name
        )
        updates = sum(
            trainer.update_schedules[role].is_due(role, step)
            for step in range(config.training.steps)
        )
        lines += [
            f"{role}: {learner.section.algorithm} on {model.device}",
            f"  observation  {model.observation_space}",
            f"  action       {model.action_space}",
            f"  network      {network} parameters",
            f"  buffer       {learner.capacity}",
            f"  updates      {updates}",
        ]
    for role, player in trainer.players.items():
        if role not in trainer.roles:
            lines.append(f"{role}: {player!r}, does not learn")
    return "\n".join(lines)


def _report(trainer: HostAgentTrainer, last: Evaluation) -> str:
    width = max(len(pair) for pair in last.values)
    lines = [
        f"\n{last.step} steps, updates: "
        + ", ".join(f"{role} {count}" for role, count in last.versions.items()),
        "time: " + ", ".join(f"{work} {spent:.0f} s" for work, spent in trainer.seconds.items()),
        "",
        f"{'pair'.ljust(width)}  {trainer.game.measure}",
        *(f"{pair.ljust(width)}  {value:.4f}" for pair, value in last.values.items()),
        "",
    ]
    for role, counts in last.actions.items():
        lines.append(f"{role} actions {counts}, entropy {entropy_of_counts(counts):.2f}")
    for role, rating in last.ratings.items():
        lines.append(f"{role} rating {rating:.0f}")
    for role, score in trainer.best_scores.items():
        lines.append(f"{role} best worst-case {trainer.game.measure} {score:.4f}")
    return "\n".join(lines)
