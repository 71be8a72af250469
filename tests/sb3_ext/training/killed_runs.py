"""`train` killed at given points, resumed and finished; prints in what its folder differs.

    python -m tests.sb3_ext.training.killed_runs FOLDER PLAN ...

A plan is a list of kill points as ``tests.sb3_ext.checkpoints.killed_runs`` has them. For every
plan a line is printed: the plan, how many of its processes were killed, and the names of the files
that are not those of a run that was not interrupted.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import torch

from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.checkpoints.checkpoint import CheckpointWarning
from sb3_ext.training.train import main as train
from tests.sb3_ext.runs.killed import contents, die_at_call, die_at_write, fork

GAME = "resgym/HironakaHost-v0"
ARGUMENTS = (
    *("--algo", "ddqn", "--env", GAME, "-n", "640", "--seed", "3", "--verbose", "0"),
    *("--eval-freq", "48", "--eval-episodes", "20", "--n-eval-envs", "4", "--log-interval", "7"),
    *("--checkpoint-updates", "10", "-params", "n_envs:8", "learning_starts:64", "batch_size:16"),
    *("buffer_size:1000", "policy_kwargs:{net_arch: [16]}", "learning_rate:0.01"),
)


def work(folder: Path, kill: str) -> int:
    kind, _, number = kill.partition(":")
    torch.manual_seed(int(number or 0))  # what a process begins with must not matter
    if kind == "step":
        die_at_call(TensorVecEnv, "step_tensors", int(number))
    if kind == "write":
        die_at_write(int(number))
    run = run_of(folder)
    arguments = ["-f", str(folder), *ARGUMENTS]
    if any(run.glob("*/args.yml")):
        arguments = ["--resume", str(run)]
    with redirect_stdout(None):
        return train(arguments)


def run_of(folder: Path) -> Path:
    return folder / "ddqn" / f"{GAME.replace('/', '-')}_1"


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("error", CheckpointWarning)
    folder, *plans = sys.argv[1:]
    whole = Path(folder) / "whole"
    fork(partial(work, whole, "none"))
    expected = contents(run_of(whole))
    for number, plan in enumerate(plans):
        parts = Path(folder) / str(number)
        kills = sum(fork(partial(work, parts, kill)) != 0 for kill in plan.split(","))
        fork(partial(work, parts, "none"))
        found = contents(run_of(parts))
        names = found.keys() | expected.keys()
        different = [name for name in names if found.get(name) != expected.get(name)]
        print(plan, kills, ",".join(sorted(different)) or "nothing", flush=True)


if __name__ == "__main__":
    main()
