"""The main job: train a host against ``choose_first`` and print how it compares.

Run as ``make train`` or ``python -m sb3_ext.quickstart``; results go to ``runs/quickstart``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import torch

import resgym  # noqa: F401  registers the environments
from resgym.game import GameSpec, random_starts
from resgym.game.rng import RowRandom, Stream
from resgym.measure.games import record_game
from resgym.measure.plots import Curve, plot_curves
from resgym.measure.rho import CrossPlay, cross_play
from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.callbacks.rho_evaluation import RhoEvaluation, player_of
from sb3_ext.checkpoints.durable_files import write_text_durably
from sb3_ext.ddqn import DDQN
from sb3_ext.runs.best import save_model
from sb3_ext.runs.command import command
from sb3_ext.runs.folder import RunFolder
from sb3_ext.runs.provenance import versions
from sb3_ext.schedules.frequency import Every
from sb3_ext.schedules.schedules import Linear
from sb3_ext.training.curves import history_curves

__all__ = ["NUM_ENVS", "QUICKSTART_UPDATES", "main", "make_model"]

NUM_ENVS = 256
QUICKSTART_UPDATES = 5_000
OPPONENT = "choose_first"
SCRIPTED_HOSTS = ("random", "random_pair", "all_coord", "zeillinger", "zeillinger_lex")
AGENTS = ("choose_first", "choose_last", "random")


def make_model(updates: int, seed: int, opponent: str = OPPONENT) -> DDQN:
    """The quickstart's learner: double Q, a permutation-invariant network, -1 per move.

    Args:
        updates: gradient updates that the learning-rate schedule spans.
        seed: of the environment, the network and the exploration.
        opponent: the agent that the host learns against.
    """
    env = gymnasium.make_vec(
        "resgym/HironakaHost-v0", num_envs=NUM_ENVS, opponent=opponent, reward="step"
    )
    return DDQN(
        "HostPolicy",
        TensorVecEnv(env),
        learning_rate=Linear(1.0e-3, 1.0e-5, steps=updates),
        exploration_rate=Linear(0.5, 0.02, steps=max(1, updates // 3)),
        buffer_size=200_000,
        learning_starts=10_000,
        batch_size=512,
        gamma=0.97,
        train_freq=1,
        gradient_steps=2,
        target_update_interval=200,
        tau=1.0,
        max_grad_norm=10.0,
        policy_kwargs={"extractor": "point_set", "net_arch": [256, 128]},
        seed=seed,
    )


def _curve(history: list[dict[str, Any]], table: CrossPlay, path: Path) -> None:
    (curve,) = history_curves(history)
    plot_curves(
        [Curve("trained host", curve.x, curve.y)],
        path,
        levels={name: table.results[name][OPPONENT].rho for name in ("zeillinger", "random_pair")},
        ylabel=f"rho against {OPPONENT}",
        title="Games finished per move while the host learns",
    )


def _sample_game(model: DDQN, seed: int) -> str:
    spec = GameSpec()
    row = torch.tensor([seed], dtype=torch.int64)
    starts = random_starts(spec, RowRandom.for_episode(row, row * 0).at(0, Stream.START))
    game = record_game(player_of(model), OPPONENT, starts, spec, seed=seed)
    return f"trained host against {OPPONENT}\n\n{game}\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sb3_ext.quickstart", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--updates",
        type=int,
        default=QUICKSTART_UPDATES,
        help=f"gradient updates (default {QUICKSTART_UPDATES})",
    )
    parser.add_argument("--seed", type=int, default=0, help="fixes the whole run (default 0)")
    parser.add_argument(
        "--games", type=int, default=10_000, help="games for each cell of the table"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/quickstart"), help="results folder")
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        help="threads of torch (default 1: on small machines more are slower)",
    )
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")
    return parser


@command("quickstart")
def main(arguments: Sequence[str]) -> int:
    """Trains, compares, writes; returns the exit code."""
    args = _parser().parse_args(arguments)
    for name in ("updates", "games", "threads"):
        if getattr(args, name) < 1:
            raise ValueError(f"{name} must be at least 1, got {getattr(args, name)}")
    torch.set_num_threads(args.threads)
    with RunFolder(args.out) as folder:
        return _run(args, folder)


def _run(args: argparse.Namespace, folder: RunFolder) -> int:
    out = folder.path
    model = make_model(args.updates, args.seed)
    evaluation = RhoEvaluation(
        [OPPONENT],
        Every(updates=max(1, args.updates // 10)),
        games=1000,
        seed=1,
        at_start=True,
        save_path=out,
    )
    timesteps = model.learning_starts + NUM_ENVS * -(-args.updates // 2)
    print(
        f"training a host against {OPPONENT}: dimension 3, 20 points, values 0..20, "
        f"{args.updates} updates"
    )
    begin = time.perf_counter()
    model.learn(timesteps, callback=evaluation, progress_bar=not args.no_progress)
    wall = time.perf_counter() - begin
    save_model(out / "host.zip", model)

    print(f"\nrho (games finished per move), {args.games} games each, cut at 200 moves:\n")
    hosts = {"trained": player_of(model), **{name: name for name in SCRIPTED_HOSTS}}
    table = cross_play(hosts, list(AGENTS), games=args.games, seed=2)
    print(table)
    training_seconds = evaluation.history[-1]["training_seconds"]
    print(f"\ntrained for {training_seconds:.0f} s ({wall:.0f} s with the evaluations)")

    summary = {
        "opponent": OPPONENT,
        "seed": args.seed,
        "updates": model._n_updates,
        "transitions": model.num_timesteps,
        "training_seconds": round(training_seconds, 1),
        "rho": {
            host: {agent: table.results[host][agent].rho for agent in table.agents}
            for host in table.hosts
        },
        "table": table.to_dict(),
        "curve": evaluation.history,
        "versions": versions(),
    }
    folder.write_json("summary.json", summary)
    written = ["model", "summary.json"]
    try:
        _curve(evaluation.history, table, out / "curve.png")
        written.append("curve.png")
    except ValueError as error:  # without matplotlib
        print(f"no curve.png: {error}", file=sys.stderr)
    write_text_durably(out / "game.txt", _sample_game(model, args.seed))
    print(f"{', '.join(written)} and game.txt are in {out}")
    return 0
