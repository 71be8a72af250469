"""Processes killed, stopped and interrupted at random moments; what takes minutes is marked."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from sb3_ext.runs.checkpoint import list_checkpoints
from sb3_ext.train.train import main as train
from tests.sb3_ext.cluster.processes import MARK, marked, wait_until
from tests.sb3_ext.helpers import GAME, run_of

ray = pytest.importorskip("ray", reason="needs the extra: pip install 'resgym[cluster]'")


@pytest.mark.long
@pytest.mark.parametrize(("number", "playing"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_a_signal_ends_a_run_with_a_checkpoint(tmp_path, number, playing):
    """While the cluster starts, and when games are played."""
    mark = uuid.uuid4().hex
    environment = {**os.environ, MARK: mark, "SPT_NOENV": "1", "PYTHONUNBUFFERED": "1"}
    environment.pop("RAY_ADDRESS", None)
    given = arguments(tmp_path, "--actors", "1", "-n", "10000000")
    command = [sys.executable, "-m", "sb3_ext.train", *given, "collector:{chunk: 10}"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    while not process.stdout.readline().startswith("Log path"):
        assert process.poll() is None
    cluster = str(Path(str(ray.__file__)).parent).encode()  # where its own programs lie
    assert wait_until(lambda: bool(marked(mark, cluster)))
    if playing:
        assert wait_until(lambda: bool(marked(mark, b"ray::play_chunk")), 60)
        time.sleep(3.0)
    process.send_signal(number)
    process.communicate(timeout=90)
    assert process.returncode == 0
    assert list(tmp_path.rglob("metrics.jsonl"))
    assert list_checkpoints(run_of(tmp_path))
    assert wait_until(lambda: not marked(mark)), marked(mark)


def arguments(folder, *more):
    command = ["--algo", "ddqn", "--env", GAME, "-f", str(folder), "-n", "640", "--seed", "0"]
    command += ["--eval-freq", "-1", "--env-kwargs", "max_num_points:5", "max_value:6", *more]
    return [*command, "-params", "n_envs:16", "learning_starts:100", "buffer_size:5000"]


def test_the_command_line_trains_with_actors(tmp_path, capfd, request):
    """In a cluster of its own, and in one that is there."""
    chunks = "collector:{chunk: 10, deterministic: true}"
    assert train([*arguments(tmp_path, "--actors", "1"), chunks]) == 0
    run = run_of(tmp_path)
    assert "received: 4\n  accepted: 4\n  stale: 0" in capfd.readouterr().out
    request.getfixturevalue("cluster")
    assert train(["--resume", str(run), "-n", "960"]) == 0
    assert "received: 6\n  accepted: 6\n  stale: 0" in capfd.readouterr().out
