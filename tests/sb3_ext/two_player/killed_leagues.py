"""Leagues that are killed at given points, resumed and finished.

    python -m tests.sb3_ext.two_player.killed_leagues FOLDER PLAN ...

Plans and what is printed of them: `tests.sb3_ext.runs.killed.compare`.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import yaml

from sb3_ext.two_player.league import main
from sb3_ext.two_player.trainer import HostAgentTrainer
from tests.sb3_ext.runs.killed import compare, die_at
from tests.sb3_ext.two_player.helpers import league_data


def work(run: Path, kill: str) -> int:
    """Goes on with a run until it is killed or finished; the exit code."""
    die_at(kill, HostAgentTrainer, "step")
    arguments = ["--config", str(run.parent / "killed.yml"), "--out", str(run)]
    if (run / "config.yml").exists():
        arguments = ["--resume", str(run)]
    with redirect_stdout(None):
        return main([*arguments, "--no-progress"])


if __name__ == "__main__":
    warnings.simplefilter("error")
    folder = Path(sys.argv[1])
    (folder / "killed.yml").write_text(yaml.safe_dump(league_data("rounds=3")))
    compare(work, folder, sys.argv[2:])
