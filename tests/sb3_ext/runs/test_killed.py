"""Runs that are killed anywhere, resumed and finished leave what a run leaves that was not killed.

python -m tests.sb3_ext.runs.test_killed FOLDER train|two_player|population PLAN ...

Plans and what is printed of them: `tests.sb3_ext.runs.killed.compare`.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import warnings
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import yaml

from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.train.train import main as train
from sb3_ext.two_player import HostAgentTrainer, job, league
from tests.sb3_ext.runs.killed import compare, die_at
from tests.sb3_ext.train.helpers import SMALL_RUN, run_of
from tests.sb3_ext.two_player.helpers import POOL, league_data, tiny

SETTINGS = (
    *("training.steps=12", "checkpoint.every_steps=2", "logging.every_steps=1"),
    *("evaluation.every_steps=5", "roles.host.net_arch=[16, b]"),
)
DRAW = random.Random(0)
DATA = {
    "two_player": lambda: tiny(*SETTINGS, *POOL, name="self_play"),
    "population": lambda: league_data("rounds=3"),
}


def points(kind: str, below: int, number: int) -> list[str]:
    """Kill points at random places."""
    return [f"{kind}:{DRAW.randrange(1, below)}" for _ in range(number)]


def goes_on(command: str, folder: Path, kill: str) -> int:
    """Goes on with a run until it is killed or finished; the exit code."""
    begun = any(folder.rglob("*.yml"))
    if command == "train":
        die_at(kill, TensorVecEnv, "step_tensors")
        given = ["--resume", str(run_of(folder))] if begun else ["-f", str(folder), *SMALL_RUN]
        return train(given)
    die_at(kill, HostAgentTrainer, "step")
    given = ["--config", str(folder.parent / "killed.yml"), "--out", str(folder)]
    main = {"two_player": job.main, "population": league.main}[command]
    return main([*(["--resume", str(folder)] if begun else given), "--no-progress"])


def work(command: str, folder: Path, kill: str) -> int:
    with redirect_stdout(StringIO()):  # what is printed here is in what the folder differs
        return goes_on(command, folder, kill)


PLANS = {
    "train": ["step:3", "step:150,write:40", *points("step", 400, 8), *points("write", 120, 12)],
    "two_player": [
        *("step:6,write:9", "write:170", *points("step", 13, 6), *points("write", 130, 10))
    ],
    "population": [
        *(f"write:{number}" for number in range(2, 200, 4)),
        *map(",".join, zip(points("step", 13, 10), points("write", 50, 10), strict=True)),
    ],
}


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("command", PLANS)
def test_runs_killed_anywhere_end_as_if_they_had_not_been(command: str, tmp_path: Path) -> None:
    """Every file of the folder is the same: checkpoints, best models, evaluations, logs.

    Killed in a step, in a write, in both, before the first checkpoint.
    """
    program = [sys.executable, "-m", "tests.sb3_ext.runs.test_killed", str(tmp_path), command]
    done = subprocess.run([*program, *PLANS[command]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = [f"{plan} {len(plan.split(','))} nothing" for plan in PLANS[command]]
    assert done.stdout.splitlines() == expected
    if command == "train":
        found = np.load(run_of(tmp_path / "whole") / "evaluations.npz")["results"]
        assert found.shape == (13, 20)
        assert len(np.unique(found.mean(1))) > 3  # the measurements tell versions apart


if __name__ == "__main__":
    warnings.simplefilter("error")
    at, name, *plans = Path(sys.argv[1]), *sys.argv[2:]
    if name in DATA:
        (at / "killed.yml").write_text(yaml.safe_dump(DATA[name](), sort_keys=False))
    compare(partial(work, name), at, plans, run_of if name == "train" else lambda folder: folder)
