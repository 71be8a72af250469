"""The command line: ``python -m sb3_ext population --config small --out runs/population``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from resgym.cli import OneLineParser
from resgym.trust import add_trust, command_line
from sb3_ext.cluster.pieces import spreading
from sb3_ext.config.checks import check_count
from sb3_ext.config.sections import ConfigError
from sb3_ext.population.config import PopulationConfig
from sb3_ext.population.plots import plot_elo, plot_payoffs
from sb3_ext.population.run import Population
from sb3_ext.runs.command import command
from sb3_ext.runs.command_line import FAILED, add_options, reporter, starts_setting
from sb3_ext.runs.folder import RunFolder
from sb3_ext.runs.provenance import provenance
from sb3_ext.runs.signals import RunSignals
from sb3_ext.runs.stopping import Ended, StopRules, read_stop_rules
from sb3_ext.two_player.trainer import HostAgentTrainer

SHIPPED = ", ".join(PopulationConfig.shipped())


@command("population", failed=FAILED)
def main(arguments: Sequence[str]) -> int:
    """Runs a population as the command line says; returns the exit code.

    0: done, or stopped by SIGINT or SIGTERM. Others as `command` says.
    """
    args = _parser().parse_args(arguments)
    check_count("--actors", args.actors, low=0)
    rules = read_stop_rules(args.stop, ("max_updates", "max_timesteps", "max_seconds", "until"))
    if (args.resume is None) == (args.config is None):
        raise ConfigError(f"give --config, a file or one of {SHIPPED}, or --resume")
    if args.resume is not None and args.out is not None:
        raise ConfigError("--out: a resumed run stays in its folder; give only --resume")
    with command_line(args.trust, args.config):
        config = _config(args)
        base = config.base()
        if rules is not None:
            figures = [f"{role}/{name}" for role in base.roles for name in ("elo", "fitness")]
            rules.check_fields(["rounds", *figures])
        # What is refused by an algorithm or a device leaves no folder behind.
        HostAgentTrainer(base).close()
        out = args.resume or args.out or Path("runs/population") / config.name
        option = "--out" if args.resume is None else "--resume"
        with RunFolder(out, option) as folder:
            if args.resume is None and (out / "config.yml").exists():
                raise ConfigError(
                    f"--out: {out} holds a run already; take another folder, or --resume {out}"
                )
            given = ["python", "-m", "sb3_ext", "population", *arguments]
            return _run(args, config, folder, given, rules)


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m sb3_ext population",
        description="Trains many hosts and agents, which play each other; the worst copy the best.",
    )
    add = parser.add_argument
    add("--config", help=f"a YAML file, or one of {SHIPPED}")
    add("--out", type=Path, help="folder of the run (default runs/population/<name>)")
    add("--resume", type=Path, metavar="DIR", help="go on with the run in this folder")
    text = "processes of Ray that work at a time (default 0: this process); members take turns"
    add("--actors", type=int, default=0, help=text)
    add_options(parser, "--timeout-s", "--set", "--starts", "--stop", "--no-progress")
    add_trust(parser)
    return parser


def _config(args: argparse.Namespace) -> PopulationConfig:
    starts = starts_setting(args.starts, "game.starts")
    if args.resume is None:
        config = PopulationConfig.read(args.config, args.settings)
        settings = [*config.settings, *starts]
        return PopulationConfig.read({**config.to_dict(), "settings": settings})
    for setting in [*args.settings, *starts]:
        if not setting.startswith("rounds="):
            raise ConfigError(f"--set {setting}: a resumed run may change only rounds")
    if not (args.resume / "config.yml").is_file():
        raise ConfigError(f"--resume: there is no run in {args.resume}")
    return PopulationConfig.read(args.resume / "config.yml", args.settings)


class _Stopped(Exception):
    """The run was asked to end; what is finished is on the disk."""


def _run(
    args: argparse.Namespace,
    config: PopulationConfig,
    folder: RunFolder,
    given: Sequence[str],
    rules: StopRules | None,
) -> int:
    asked: list[object] = []
    report = reporter(not args.no_progress)

    def check() -> None:
        if asked:
            raise _Stopped
        if rules is not None:
            rules.check()

    spreads = spreading(args.actors, check, args.timeout_s)
    with RunSignals(asked.append, lambda: None), spreads as spread:
        turns = f", who take turns on {args.actors or 1}" if config.members > args.actors else ""
        report(f"{config.members} members{turns}")
        population = Population(config, folder, report)
        origin = provenance(config.seed, given)
        if args.resume is None:
            folder.write_json("run.json", origin)
        else:
            folder.append("resumed.jsonl", {"step": population.round, **origin})
        folder.write_yaml("config.yml", config.resolved())
        try:
            population.run(spread, partial(_look, rules))
        except _Stopped:
            print(f"stopped in round {population.round + 1}; --resume {folder.path} goes on")
            return 0
        except Ended as ended:
            print(f"ends in round {population.round + 1}: {ended}; --resume {folder.path} goes on")
            if not population.round:
                return 0
            population.save_best()
    if find_spec("matplotlib") is not None:
        plot_elo(population.league, folder.path / "elo.png")
        plot_payoffs(population.league, folder.path / "payoffs.png")
    print(f"{_table(population)}\n\nresults are in {folder.path}")
    return 0


def _look(rules: StopRules | None, population: Population) -> None:
    """Shows the rules a population between two rounds.

    Updates and transitions are sums over members and roles, as their checkpoints have them;
    metrics are ``rounds``, and of the best version of a role ``<role>/elo``, ``<role>/fitness``.
    """
    if rules is None:
        return
    league = population.league
    values = {"rounds": float(population.round)}
    for role in population.roles if population.round else ():
        best = league.strongest(league.present(role))
        values[f"{role}/elo"] = league.versions[best].elo
        values[f"{role}/fitness"] = league.fitness(best)
    rules.observe(values)
    counted = {"max_updates", "max_timesteps"} & rules.budgets.keys()
    rules.check(**(population.counts() if counted else {}))


def _table(population: Population) -> str:
    """The last version of every member, and the best there is, by role."""
    league, lines = population.league, []
    for role in population.roles:
        latest = league.tags()[role]["latest"]
        best = league.strongest(league.present(role))
        lines.append(f"\n{'version':14}  member  round   Elo  fitness  hyperparameters")
        for name in [*latest, *([best] if best not in latest else [])]:
            each = league.versions[name]
            values = ", ".join(
                f"{key.removeprefix(f'roles.{role}.')} {value:.4g}"
                for key, value in each.hyperparameters.items()
            )
            lines.append(
                f"{name + '*' * (name == best):14}  {each.member:6}  {each.round:5}  "
                f"{each.elo:4.0f}  {league.fitness(name):7.4f}  {values}"
            )
    return "\n".join([*lines, "* highest Elo, in models/"])
