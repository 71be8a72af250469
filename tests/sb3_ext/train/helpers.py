"""Shared by the tests of training."""

from pathlib import Path

import gymnasium

from resgym.scoreboard import read_rows
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import DDQN

SIZES = {"dimension": 3, "max_num_points": 5, "max_value": 6}


def make_env(seat, **keywords):
    env_id = f"resgym/Hironaka{seat.capitalize()}-v0"
    return TensorVecEnv(gymnasium.make_vec(env_id, num_envs=4, **{**SIZES, **keywords}))


def make_model(seat, **keywords):
    """With random weights, which play as well as any for these tests."""
    policy = f"{seat.capitalize()}Policy"
    arguments = {"policy_kwargs": {"net_arch": [16, "b", "r8"]}, "seed": 1}
    env = make_env(seat)
    return DDQN(policy, env, buffer_size=100, device="cpu", **{**arguments, **keywords})


GAME = "resgym/HironakaHost-v0"
SMALL_RUN = (
    *("--algo", "ddqn", "--env", GAME, "-n", "640", "--seed", "3", "--verbose", "0"),
    *("--eval-freq", "48", "--eval-episodes", "20", "--n-eval-envs", "4", "--log-interval", "7"),
    *("--checkpoint-updates", "10", "--save-freq", "104"),
    *("-params", "n_envs:8", "learning_starts:64", "batch_size:16"),
    *("buffer_size:1000", "policy_kwargs:{net_arch: [16]}", "learning_rate:0.01"),
    "env_kwargs:{opponent: choose_first, reward: step, max_num_points: 5, max_episode_steps: 20}",
)
"""Arguments of a short run of `train`, without its folder."""


def recorded(name, task):
    """A player's result in the scoreboard of this project."""
    rows = read_rows(Path(__file__).parents[3] / "docs" / "scoreboard.json")
    return next(row for row in rows if (row.name, row.task) == (name, task))


def bytes_of(run):
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def run_of(folder, algorithm="ddqn", env_id=GAME):
    return folder / algorithm / f"{env_id.replace('/', '-')}_1"
