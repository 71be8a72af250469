"""Two-player runs, or leagues, that are killed at given points, resumed and finished.

    python -m tests.sb3_ext.two_player.killed_runs FOLDER two_player|population PLAN ...

Plans and what is printed of them: `tests.sb3_ext.runs.killed.compare`.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import yaml

from sb3_ext.two_player import HostAgentTrainer, job, league
from tests.sb3_ext.runs.killed import compare, die_at
from tests.sb3_ext.two_player.helpers import POOL, league_data, tiny

SETTINGS = (
    "training.steps=12",
    "checkpoint.every_steps=2",
    "logging.every_steps=1",
    "evaluation.every_steps=5",
    "roles.host.net_arch=[16, b]",
)
MAINS = {"two_player": job.main, "population": league.main}


def work(main, run: Path, kill: str) -> int:
    """Goes on with a run until it is killed or finished; the exit code."""
    die_at(kill, HostAgentTrainer, "step")
    arguments = ["--config", str(run.parent / "killed.yml"), "--out", str(run)]
    if (run / "config.yml").exists():
        arguments = ["--resume", str(run)]
    with redirect_stdout(None):
        return main([*arguments, "--no-progress"])


if __name__ == "__main__":
    warnings.simplefilter("error")
    folder, name, *plans = Path(sys.argv[1]), *sys.argv[2:]
    data = {
        "two_player": tiny(*SETTINGS, *POOL, name="self_play"),
        "population": league_data("rounds=3"),
    }
    (folder / "killed.yml").write_text(yaml.safe_dump(data[name], sort_keys=False))
    compare(partial(work, MAINS[name]), folder, plans)
