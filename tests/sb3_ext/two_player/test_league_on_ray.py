"""Populations whose members are trained by other processes, which are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sb3_ext.two_player.league import main
from tests.sb3_ext.cluster.processes import MARK, marked, marked_cluster, wait_until
from tests.sb3_ext.runs.killed import contents
from tests.sb3_ext.two_player.helpers import league_data

pytest.importorskip("ray", reason="needs the extra: pip install 'resgym[cluster]'")

COMMAND = [sys.executable, "-m", "sb3_ext", "population", "--no-progress"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three members, so that they take turns on two processors."""
    path = tmp_path_factory.mktemp("population") / "tiny.yml"
    path.write_text(yaml.safe_dump(league_data("members=3")))
    return str(path)


@pytest.fixture(scope="module")
def whole(file: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is in the folder of a run in one process."""
    out = tmp_path_factory.mktemp("population") / "whole"
    assert main(["--config", file, "--out", str(out), "--no-progress"]) == 0
    return contents(out)


@pytest.fixture
def cluster() -> Iterator[str]:
    with marked_cluster(num_cpus=2) as address:
        yield address


class Harm:
    """Kills processes that train, at random moments, while the block lasts."""

    def __init__(self, kills: int) -> None:
        self.left, self.over = kills, False
        self.thread = threading.Thread(target=self._kill, daemon=True)

    def _kill(self) -> None:
        draw = random.Random(1)
        while self.left and not self.over:
            if there := marked(os.environ[MARK], b"ray::do_piece"):
                time.sleep(draw.uniform(0.0, 0.5))
                for number in there[:1]:
                    try:
                        os.kill(number, signal.SIGKILL)
                        self.left -= 1
                    except ProcessLookupError:
                        pass
            time.sleep(0.05)

    def __enter__(self) -> Harm:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over = True
        self.thread.join()


def test_neither_the_number_of_processes_nor_their_deaths_change_anything(
    file: str, whole: dict[str, Any], tmp_path: Path, cluster: str
) -> None:
    for actors in (1, 2):
        out = tmp_path / str(actors)
        with Harm(kills=3 * (actors == 2)) as harm:
            assert main(["--config", file, "--out", str(out), "--actors", str(actors)]) == 0
        assert harm.left == 0
        different = contents(out)
        assert different.keys() == whole.keys()
        assert [name for name in whole if whole[name] != different[name]] == []


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, marks=pytest.mark.long),
    ],
)
def test_nobody_is_left_after_a_signal_and_the_run_goes_on(
    file: str, whole: dict[str, Any], tmp_path: Path, number: int
) -> None:
    """With a cluster of its own; resumed at once, whoever may still be at work."""
    mark, out = uuid.uuid4().hex, tmp_path / "run"
    environment = {**os.environ, MARK: mark, "SPT_NOENV": "1"}
    environment.pop("RAY_ADDRESS", None)
    command = [*COMMAND, "--config", file, "--out", str(out), "--actors", "2"]
    process = subprocess.Popen(command, env=environment)
    assert wait_until(lambda: bool(marked(mark, b"ray::do_piece")), 120)
    process.send_signal(number)
    process.wait(timeout=60)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert main(["--resume", str(out), "--no-progress"]) == 0
    again = contents(out)
    assert [name for name in whole if whole[name] != again[name]] == []
    # After SIGKILL Ray's own agents notice by themselves, which takes them a while.
    assert wait_until(lambda: not marked(mark), 150), marked(mark)


def test_more_processes_than_there_are_processors(file: str, tmp_path: Path, capfd: Any) -> None:
    out = tmp_path / "run"
    assert main(["--config", file, "--out", str(out), "--actors", "100000"]) == 2
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("population")]
    assert len(said) == 1
    assert "actors: 100000 need 100000 CPUs" in said[0]
