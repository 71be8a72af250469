"""Populations that are killed at given points, resumed and finished, as their module of models.

    python -m tests.sb3_ext.population.killed_runs FOLDER PLAN ...

Plans and what is printed of them: `tests.sb3_ext.runs.killed.compare`.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path

from sb3_ext.population import cli
from sb3_ext.two_player.trainer import HostAgentTrainer
from tests.sb3_ext.population.helpers import plain, written
from tests.sb3_ext.runs.killed import compare, die_at


def work(run: Path, kill: str) -> int:
    """Goes on with a run until it is killed or finished; the exit code."""
    die_at(kill, HostAgentTrainer, "step")
    arguments = ["--config", str(run.parent / "killed.yml"), "--out", str(run)]
    if (run / "config.yml").exists():
        arguments = ["--resume", str(run)]
    with redirect_stdout(None):
        return cli.main([*arguments, "--no-progress"])


if __name__ == "__main__":
    warnings.simplefilter("error")
    cli.find_spec = lambda name: None  # type: ignore[assignment]  # pictures are no text
    folder = Path(sys.argv[1])
    written(folder / "killed.yml", plain("rounds=3"))
    compare(work, folder, sys.argv[2:])
