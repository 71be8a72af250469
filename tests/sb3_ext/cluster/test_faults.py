"""Processes killed, stopped and interrupted at random moments; what takes minutes is marked."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from sb3_ext.runs.checkpoint import list_checkpoints
from sb3_ext.train.train import main as train
from tests.sb3_ext.cluster.processes import (
    MARK,
    actor_processes,
    marked,
    marked_cluster,
    wait_until,
)

ray = pytest.importorskip("ray", reason="needs the extra: pip install 'resgym[cluster]'")

RUN = [sys.executable, "-m", "tests.sb3_ext.cluster.runs"]


def learner(folder: Path, address: str | None, mark: str, transitions: int) -> subprocess.Popen:
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, MARK: mark, "SPT_NOENV": "1"}
    environment.pop("RAY_ADDRESS", None)
    if address is not None:
        environment["RAY_ADDRESS"] = address
    command = [*RUN, str(folder), "2", str(transitions)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.long
def test_a_killed_learner_goes_on_bit_for_bit(tmp_path: Path) -> None:
    """Twenty times in one run."""
    source, transitions = random.Random(3), 8000
    with marked_cluster(num_cpus=2) as address:
        mark = os.environ[MARK]
        assert learner(tmp_path / "whole", address, mark, transitions).communicate()
        expected = (tmp_path / "whole" / "digest").read_text()
        killed = 0
        for _ in range(20):
            process = learner(tmp_path / "parts", address, mark, transitions)
            assert process.stdout is not None
            for _ in range(source.randint(3, 5)):
                assert process.stdout.readline()
            time.sleep(source.uniform(0.0, 0.05))
            process.kill()
            process.communicate()
            killed += process.returncode == -signal.SIGKILL
            assert wait_until(lambda: not actor_processes())
        assert killed == 20
        assert learner(tmp_path / "parts", address, mark, transitions).communicate()
        assert (tmp_path / "parts" / "digest").read_text() == expected


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nobody_is_left_after_a_signal(tmp_path: Path, number: int) -> None:
    """With a cluster of its own, however the learner ends."""
    mark = uuid.uuid4().hex
    process = learner(tmp_path / "run", None, mark, 10**9)
    assert process.stdout is not None
    assert process.stdout.readline()
    assert process.stdout.readline()
    assert marked(mark, b"ray::")
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode != 0
    # After SIGKILL Ray's own agents notice by themselves, which takes them a while.
    assert wait_until(lambda: not marked(mark), 150), marked(mark)


@pytest.mark.long
@pytest.mark.parametrize(("number", "playing"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_a_signal_ends_a_run_with_a_checkpoint(tmp_path: Path, number: int, playing: bool) -> None:
    """While the cluster starts, and when games are played."""
    mark = uuid.uuid4().hex
    environment = {**os.environ, MARK: mark, "SPT_NOENV": "1", "PYTHONUNBUFFERED": "1"}
    environment.pop("RAY_ADDRESS", None)
    given = arguments(tmp_path, "--actors", "1", "-n", "10000000")
    command = [sys.executable, "-m", "sb3_ext.train", *given, "collector:{chunk: 10}"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
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
    assert list_checkpoints(tmp_path / "ddqn" / "resgym-HironakaHost-v0_1")
    assert wait_until(lambda: not marked(mark)), marked(mark)


SMALL = ("n_envs:16", "learning_starts:100", "batch_size:32", "buffer_size:5000")


def arguments(folder: Path, *more: str) -> list[str]:
    command = ["--algo", "ddqn", "--env", "resgym/HironakaHost-v0", "-f", str(folder), "-n", "640"]
    command += ["--eval-freq", "-1", "--seed", "0", "--device", "cpu"]
    command += ["--env-kwargs", "max_num_points:5", "max_value:6"]
    return [*command, *more, "-params", *SMALL]


def test_the_command_line_trains_with_actors(tmp_path: Path, capfd: Any) -> None:
    chunks = "collector:{chunk: 10, deterministic: true}"
    assert train([*arguments(tmp_path, "--actors", "1"), chunks]) == 0
    run = tmp_path / "ddqn" / "resgym-HironakaHost-v0_1"
    assert "received: 4\n  accepted: 4\n  stale: 0" in capfd.readouterr().out
    assert train(["--resume", str(run), "-n", "960"]) == 0
    assert "received: 6\n  accepted: 6\n  stale: 0" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["collector:{actors: -1}"], "actors must be"),
        pytest.param(["--actors", "100000"], "actors: 100000 need 100", marks=pytest.mark.long),
        (["collector:{chunks: 3}"], "unknown key of collector 'chunks'"),
    ],
)
def test_what_is_wrong_is_one_line_and_code_2(
    tmp_path: Path, capfd: Any, more: list[str], message: str
) -> None:
    given = arguments(tmp_path)
    given = [*given, *more] if ":" in more[0] else [*arguments(tmp_path, *more)]
    assert train(given) == 2
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("train: ")]
    assert len(said) == 1
    assert message in said[0]
    assert not list(tmp_path.rglob("*.yml"))
