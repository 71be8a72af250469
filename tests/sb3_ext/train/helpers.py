"""Shared by the tests of training."""

from pathlib import Path

from resgym.scoreboard import read_rows

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
