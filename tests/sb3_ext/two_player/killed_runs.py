"""Two-player runs that are killed at given points, resumed and finished, as their module of models.

    python -m tests.sb3_ext.two_player.killed_runs FOLDER PLAN ...

Plans and what is printed of them: `tests.sb3_ext.runs.killed.compare`.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import yaml

from sb3_ext.two_player.job import main as train
from sb3_ext.two_player.trainer import HostAgentTrainer
from tests.sb3_ext.runs.killed import compare, die_at
from tests.sb3_ext.two_player.helpers import tiny

SETTINGS = (
    "training.steps=12",
    "checkpoint.every_steps=2",
    "logging.every_steps=1",
    "evaluation.every_steps=5",
    "roles.host.net_arch=[16, b]",
    "self_play.save_steps=2",
    "self_play.swap_steps=1",
    "self_play.window=2",
    "self_play.rating_games=5",
)


def work(run: Path, kill: str) -> int:
    """Goes on with a run until it is killed or finished; the exit code."""
    die_at(kill, HostAgentTrainer, "step")
    arguments = ["--config", str(run.parent / "killed.yml"), "--out", str(run)]
    if (run / "config.yml").exists():
        arguments = ["--resume", str(run)]
    with redirect_stdout(None):
        return train([*arguments, "--no-progress"])


if __name__ == "__main__":
    warnings.simplefilter("error")
    folder = Path(sys.argv[1])
    configuration = yaml.safe_dump(tiny(*SETTINGS, name="self_play"), sort_keys=False)
    (folder / "killed.yml").write_text(configuration)
    compare(work, folder, sys.argv[2:])
