"""Train a host against ``choose_first`` and compare it with scripted hosts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium

from resgym.cli import OneLineParser
from resgym.measure.plots import plot_curves
from resgym.measure.rho import cross_play
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.callbacks.base import Every
from sb3_ext.callbacks.evaluation import RhoEvaluation, player_of
from sb3_ext.checkpoints.models import save_player
from sb3_ext.config.checks import check_count
from sb3_ext.config.sections import find_config
from sb3_ext.ddqn import DDQN
from sb3_ext.runs.command import add_options, command, torch_threads
from sb3_ext.runs.files import RunFolder, provenance, write_json
from sb3_ext.train.config_files import section_of, transitions_for
from sb3_ext.train.curves import history_curves

QUICKSTART_UPDATES = 2_000
GAME = "resgym/HironakaHost-v0"
OPPONENT = "choose_first"
SCRIPTED_HOSTS = ("random", "random_pair", "all_coord", "zeillinger", "zeillinger_lex")
AGENTS = ("choose_first", "choose_last", "random")


def make_model(updates: int, seed: int, opponent: str = OPPONENT, **changes: Any) -> DDQN:
    """The quickstart's learner: that of `configs/ddqn.yml`, with schedules of another length.

    Args:
        updates: gradient updates that the learning-rate schedule spans.
        seed: seed of environment, network and exploration.
        opponent: an agent by name.
        changes: arguments of `DDQN`; ``n_steps=1`` learns more against an agent that draws.
    """
    _, section = section_of(find_config("ddqn.yml", shipped=True), GAME)
    games = {**section.pop("env_kwargs"), "opponent": opponent}
    env = gymnasium.make_vec(GAME, num_envs=section.pop("n_envs"), **games)
    del section["n_timesteps"]
    section["learning_rate"]["steps"] = updates
    section["exploration_rate"]["steps"] = max(1, updates // 3)
    return DDQN(env=TensorVecEnv(env), seed=seed, **{**section, **changes})


@command("quickstart")
def main(arguments: Sequence[str]) -> int:
    """Trains, compares, writes; returns the exit code, see `sb3_ext.runs.command.command`."""
    parser = OneLineParser(
        prog="python -m sb3_ext quickstart", description=(__doc__ or "").splitlines()[0]
    )
    add, updates = parser.add_argument, "gradient updates (default %(default)s)"
    add("--updates", type=int, default=QUICKSTART_UPDATES, help=updates)
    add("--seed", type=int, default=0, help="seed of the run (default 0)")
    add("--games", type=int, default=10_000, help="games of each pairing in the table")
    add("--out", type=Path, default=Path("runs/quickstart"), help="folder for the results")
    add_options(parser, "--threads", "--no-progress")
    args = parser.parse_args(arguments)
    for name in ("updates", "games"):
        check_count(name, getattr(args, name))
    with torch_threads(args.threads), RunFolder(args.out):
        _run(args, args.out)
    return 0


def _run(args: argparse.Namespace, out: Path) -> None:
    model, every = make_model(args.updates, args.seed), Every(updates=max(1, args.updates // 10))
    games = min(args.games, 1000)
    evaluation = RhoEvaluation([OPPONENT], every, games=games, seed=1, at_start=True, save_path=out)
    print(f"training a host against {OPPONENT}: 3 axes, 20 points, values 0..20")
    transitions = transitions_for(model, args.updates)
    model.learn(transitions, evaluation, progress_bar=not args.no_progress)
    save_player(out / "host", model, {"updates": args.updates, "opponent": OPPONENT})

    print(
        f"\nrho (games finished per move), {args.games} games each, cut at 200 moves; in brackets "
        "its share of the\noptimum, which no host can surpass from these starts:\n"
    )
    hosts = {"trained": player_of(model), **{name: name for name in SCRIPTED_HOSTS}}
    table = cross_play(hosts, list(AGENTS), games=args.games, seed=2, optimum=True)
    seconds = evaluation.history[-1]["training_seconds"]
    print(f"{table}\n\ntrained for {seconds:.0f} s, without the evaluations")
    summary = {
        "opponent": OPPONENT,
        "updates": model.num_updates,
        "transitions": model.num_timesteps,
        "training_seconds": round(seconds, 1),
        "table": table.to_dict(),
        **provenance(args.seed),
    }
    write_json(out / "summary.json", summary)
    levels = {name: table.results[name][OPPONENT].rho for name in ("zeillinger", "random_pair")}
    try:
        plot_curves(
            history_curves(evaluation.history),
            out / "curve.png",
            levels=levels,
            ylabel=f"rho against {OPPONENT}",
            title="Games finished per move while the host learns",
        )
    except ValueError as error:  # without matplotlib
        print(f"no curve.png: {error}", file=sys.stderr)
    print(f"{', '.join(sorted(each.name for each in out.glob('[a-z]*')))} are in {out}")
