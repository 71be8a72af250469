"""Runs that are killed anywhere, resumed and finished leave what one leaves that was not killed."""

import os
import random
import signal
from functools import partial

import numpy as np
import pytest

from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.train.train import main as train
from sb3_ext.two_player import HostAgentTrainer, job
from tests.sb3_ext.helpers import SMALL_RUN, run_of
from tests.sb3_ext.runs.killed import contents, die_at, fork
from tests.sb3_ext.two_player.helpers import POOL, written

SETTINGS = (
    *("training.steps=12", "checkpoint.every_steps=2", "logging.every_steps=1"),
    *("evaluation.every_steps=5", "roles.host.net_arch=[16, b]"),
)
DRAW = random.Random(0)


def points(kind, below, number):
    """Kill points at random places."""
    return [f"{kind}:{DRAW.randrange(1, below)}" for _ in range(number)]


def goes_on(command, folder, kill):
    """Goes on with a run until it is killed or finished; the exit code."""
    begun = any(folder.rglob("*.yml"))
    if command == "train":
        die_at(kill, TensorVecEnv, "step_tensors", "step_wait")
        given = ["--resume", str(run_of(folder))] if begun else ["-f", str(folder), *SMALL_RUN]
        return train(given)
    die_at(kill, HostAgentTrainer, "step")
    given = ["--config", str(folder.parent / "killed.yml"), "--out", str(folder)]
    return job.main([*(["--resume", str(folder)] if begun else given), "--no-progress"])


PLANS = {
    "train": ["step:3", "step:150,write:40", *points("step", 400, 8), *points("write", 120, 12)],
    "two_player": ["step:6,write:9", "write:150", *points("step", 13, 6), *points("write", 130, 9)],
}


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("command", PLANS)
def test_runs_killed_anywhere_end_as_if_they_had_not_been(command, tmp_path):
    """Every file is the same. A plan has a kill point for each process before the one that ends."""
    folder_of = run_of if command == "train" else lambda folder: folder
    written(tmp_path / "killed.yml", *SETTINGS, *POOL, name="self_play")
    fork(partial(goes_on, command, tmp_path / "whole", "none"))
    expected = contents(folder_of(tmp_path / "whole"))
    for number, plan in enumerate(PLANS[command]):
        parts = tmp_path / str(number)
        for kill in plan.split(","):
            assert fork(partial(goes_on, command, parts, kill)) == signal.SIGKILL, plan
        fork(partial(goes_on, command, parts, "none"))
        found = contents(folder_of(parts))
        names = found.keys() | expected.keys()
        assert [name for name in names if found.get(name) != expected.get(name)] == [], plan
    if command == "train":
        found = np.load(run_of(tmp_path / "whole") / "evaluations.npz")["results"]
        assert found.shape == (13, 20)
        assert len(np.unique(found.mean(1))) > 3  # the measurements tell versions apart
