"""Train a host and measure it: ``quickstart`` against one agent, ``win`` against every agent."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium

from resgym.benchmark import evaluate
from resgym.cli import OneLineParser
from resgym.measure.rho import cross_play
from resgym.pictures.plots import plot_curves
from resgym.players import Player
from resgym.scoreboard import Scoreboard, shipped_rows
from sb3_ext.callbacks.base import Every
from sb3_ext.callbacks.evaluation import RhoEvaluation, player_of
from sb3_ext.checkpoints.models import save_player
from sb3_ext.config.checks import check_count
from sb3_ext.config.sections import find_config
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.algorithms import ALGORITHMS
from sb3_ext.runs.command import add_options, command, torch_threads
from sb3_ext.runs.files import RunFolder, provenance, write_json
from sb3_ext.train.config_files import (
    make_callbacks,
    section_of,
    transitions_for,
    with_classes,
)
from sb3_ext.train.curves import history_curves
from sb3_ext.types import Arguments, Data

GAME = "resgym/HironakaHost-v0"
SCRIPTED_HOSTS = ("random", "random_pair", "all_coord", "zeillinger", "zeillinger_lex")
AGENTS = ("choose_first", "choose_last", "random")


class Preset(NamedTuple):
    """What a command trains and shows.

    Attributes:
        config: name of its configuration.
        algorithm: name of its algorithm.
        updates: gradient updates by default.
        opponent: the agent of the learning curve.
        games: most games of a point of the curve.
        show: measures the host in this many games, prints what came out, and returns it as data.
    """

    config: str
    algorithm: str
    updates: int
    opponent: str
    games: int
    show: Callable[[Player, int], Data]

    def section(self) -> Arguments:
        """The settings of the configuration."""
        return section_of(find_config(self.config, shipped=True), GAME)[1]


def show_pairings(host: Player, games: int) -> Data:
    """Print rho of the host and of scripted ones against three agents."""
    print(
        f"\nrho (games finished per move), {games} games each, cut at 200 moves; in brackets "
        "its share of the\noptimum, which no host can surpass from these starts:\n"
    )
    hosts = {"trained": host, **{name: name for name in SCRIPTED_HOSTS}}
    table = cross_play(hosts, list(AGENTS), games=games, seed=2, optimum=True)
    print(table)
    return table.to_dict()


def show_worst_case(host: Player, _: int) -> Data:
    """Print the exact worst case of the host, among shipped ones, on the task `worst-20`."""
    print("\nmeasuring the longest game that any agent can force, from each of 481 starts\n")
    found = evaluate(host, "worst-20", name="trained")
    print(Scoreboard(row for row in (*shipped_rows(), found) if row.task == found.task))
    print(
        "\nStrength: moves of best play / moves in the worst case, 0 over 200 moves, on average.\n"
        f"trained: {found.details['cut']:.0f} of {len(found.counts)} starts over 200 moves. Next, "
        "for 0.97 in forty minutes:\n  python -m sb3_ext.train --algo minimax "
        f"--env {GAME} --conf-file play/full.yml --progress"
    )
    return {"strength": [found.value, found.highest], **found.details}


QUICKSTART = Preset("ddqn.yml", "ddqn", 2_000, "choose_first", 1_000, show_pairings)
WIN = Preset("play/win.yml", "minimax", 3_000, "taught", 200, show_worst_case)


def make_model(updates: int, seed: int, preset: Preset = QUICKSTART, **changes: Any) -> DDQN:
    """The learner of a preset, with schedules of another length.

    Args:
        updates: gradient updates that the schedules span.
        seed: seed of environment, network and exploration.
        preset: configuration and algorithm.
        changes: other settings; ``n_steps=1`` learns more against an agent that draws.
    """
    section = {**preset.section(), **changes}
    env = gymnasium.make_vec(GAME, section["n_envs"], **section["env_kwargs"])
    for name, spans in (("learning_rate", updates), ("exploration_rate", max(1, updates // 3))):
        if name in section:
            section[name]["steps"] = spans
    make: Any = ALGORITHMS[preset.algorithm]
    model: DDQN = make(seed=seed, **with_classes(section, make, env))
    return model


def _main(name: str, preset: Preset, arguments: Sequence[str]) -> int:
    parser = OneLineParser(prog=f"python -m sb3_ext {name}", description=f"{preset.show.__doc__}")
    add = parser.add_argument
    add(
        "--updates", type=int, default=preset.updates, help="gradient updates (default %(default)s)"
    )
    add("--seed", type=int, default=0, help="seed of the run (default 0)")
    add("--games", type=int, default=10_000, help="most games against one agent at a time")
    add("--out", type=Path, default=Path("runs", name), help="folder for the results")
    add_options(parser, "--threads", "--no-progress")
    args = parser.parse_args(arguments)
    for each in ("updates", "games"):
        check_count(each, getattr(args, each))
    with torch_threads(args.threads), RunFolder(args.out):
        _run(args, preset)
    return 0


# Trains against `choose_first` and compares; trains a host that wins against every agent.
main = command("quickstart")(partial(_main, "quickstart", QUICKSTART))
win = command("win")(partial(_main, "win", WIN))


def _run(args: argparse.Namespace, preset: Preset) -> None:
    model = make_model(args.updates, args.seed, preset=preset)
    out = args.out
    every = Every(updates=max(1, args.updates // 10))
    games = min(args.games, preset.games)
    evaluation = RhoEvaluation(
        [preset.opponent], every, games=games, seed=1, at_start=True, save_path=out
    )
    print("training a host: 3 axes, 20 points, values 0..20")
    model.learn(
        transitions_for(model, args.updates),
        [*make_callbacks(preset.section().get("callback")), evaluation],
        progress_bar=not args.no_progress,
    )
    about = {"updates": model.num_updates, "transitions": model.num_timesteps}
    save_player(out / "host", model, about)
    table = preset.show(player_of(model), args.games)
    seconds = evaluation.history[-1]["training_seconds"]
    print(f"\ntrained for {seconds:.0f} s, without the evaluations")
    summary = {
        "opponent": preset.opponent,
        **about,
        "training_seconds": round(seconds, 1),
        "table": table,
        **provenance(args.seed),
    }
    write_json(out / "summary.json", summary)
    try:
        plot_curves(
            history_curves(evaluation.history),
            out / "curve.png",
            levels={
                name: table[name][preset.opponent]["rho"]
                for name in ("zeillinger", "random_pair")
                if name in table
            },
            ylabel=f"rho against {preset.opponent}",
            title="Games finished per move while the host learns",
        )
    except ValueError as error:  # without matplotlib
        print(f"no curve.png: {error}", file=sys.stderr)
    print(f"{', '.join(sorted(each.name for each in out.glob('[a-z]*')))} are in {out}")
