"""`train` killed at given points, resumed and finished; prints in what its folder differs.

    python -m tests.sb3_ext.train.killed_runs FOLDER PLAN ...

Plans and what is printed of them: `tests.sb3_ext.runs.killed.compare`.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.runs.files import CheckpointWarning
from sb3_ext.train.train import main as train
from tests.sb3_ext.runs.killed import compare, die_at

GAME = "resgym/HironakaHost-v0"
ARGUMENTS = (
    *("--algo", "ddqn", "--env", GAME, "-n", "640", "--seed", "3", "--verbose", "0"),
    *("--eval-freq", "48", "--eval-episodes", "20", "--n-eval-envs", "4", "--log-interval", "7"),
    *("--checkpoint-updates", "10", "--save-freq", "104"),
    *("-params", "n_envs:8", "learning_starts:64", "batch_size:16"),
    *("buffer_size:1000", "policy_kwargs:{net_arch: [16]}", "learning_rate:0.01"),
)


def work(folder, kill):
    die_at(kill, TensorVecEnv, "step_tensors")
    run = run_of(folder)
    arguments = ["-f", str(folder), *ARGUMENTS]
    if any(run.glob("*/args.yml")):
        arguments = ["--resume", str(run)]
    with redirect_stdout(StringIO()):  # what is printed here is in what the folder differs
        return train(arguments)


def run_of(folder):
    return folder / "ddqn" / f"{GAME.replace('/', '-')}_1"


if __name__ == "__main__":
    warnings.simplefilter("error", CheckpointWarning)
    compare(work, Path(sys.argv[1]), sys.argv[2:], run_of)
