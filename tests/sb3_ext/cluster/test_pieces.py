"""An ordered map over pieces of work in other processes, and the commands that use it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sb3_ext.attack.attack import main as attack
from sb3_ext.cluster import pieces
from sb3_ext.cluster.pieces import AHEAD, spreading
from sb3_ext.runs.files import file_digest
from sb3_ext.teach import teach
from tests.sb3_ext.attack.helpers import LESS
from tests.sb3_ext.cluster.processes import MARK, marked, marked_cluster, wait_until

COMMAND = b"ray::do_piece"
NEEDS_RAY = "needs the extra: pip install 'resgym[cluster]'"


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two processors; it is the user's, so that it stays when a block ends."""
    pytest.importorskip("ray", reason=NEEDS_RAY)
    with marked_cluster(num_cpus=2):
        yield


def workers() -> list[int]:
    return marked(os.environ[MARK], COMMAND)


def waits_for_the_third(folder: Path, piece: int) -> tuple[int, int, int]:
    """The first piece ends when the third has been done."""
    if piece == 2:
        (folder / "third").touch()
    assert piece or wait_until((folder / "third").exists)
    return piece, os.getpid(), torch.get_num_threads()


def dies_once(folder: Path, piece: int) -> int:
    died = folder / "died"
    if piece == 1 and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 10 * piece


def dies(piece: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fails(piece: int) -> int:
    return 6 // (2 - piece)


def doubled(array: np.ndarray) -> np.ndarray:
    array *= 2
    return array


def test_no_actors_are_map() -> None:
    with spreading(0) as spread:
        assert spread is map


@pytest.mark.usefixtures("cluster")
def test_results_come_in_the_order_of_the_pieces(tmp_path: Path) -> None:
    asked: list[int] = []

    def all_pieces() -> Iterator[int]:
        for piece in range(100):
            asked.append(piece)
            yield piece

    with spreading(2) as spread:
        results: Any = spread(partial(waits_for_the_third, tmp_path), all_pieces())
        first = [next(results) for _ in range(3)]
        assert len(asked) <= 2 * AHEAD + 3
        found = [*first, *results]
        (array,) = spread(doubled, [np.arange(3)])
        array += 1
    assert [piece for piece, _, _ in found] == list(range(100))
    processes = {process for _, process, _ in found}
    assert len(processes) == 2
    assert os.getpid() not in processes
    assert {threads for *_, threads in found} == {1}
    assert array.tolist() == [1, 3, 5]
    assert wait_until(lambda: not workers())


@pytest.mark.usefixtures("cluster")
def test_a_piece_whose_process_dies_is_done_again(tmp_path: Path, monkeypatch: Any) -> None:
    with spreading(2) as spread:
        assert list(spread(partial(dies_once, tmp_path), range(4))) == [0, 10, 20, 30]
        monkeypatch.setattr(pieces, "LOST_IN_A_ROW", 2)
        with pytest.raises(ChildProcessError, match=r"^piece 0: 2 times in a row") as caught:
            list(spread(dies, [1]))
        assert "\n" not in str(caught.value)
    assert wait_until(lambda: not workers())


def test_lost_processes_leave_stdout_alone(tmp_path: Path) -> None:
    """Ray would write of them where a command prints its results."""
    pytest.importorskip("ray", reason=NEEDS_RAY)
    program = """
import sys, time
from functools import partial
from pathlib import Path
from sb3_ext.cluster.pieces import spreading
from tests.sb3_ext.cluster.test_pieces import dies_once
if __name__ == "__main__":
    with spreading(1) as spread:
        print(list(spread(partial(dies_once, Path(sys.argv[1])), range(3))))
        time.sleep(1.0)
"""
    environment = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    command = [sys.executable, "-c", program, str(tmp_path)]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (said.returncode, said.stdout) == (0, "[0, 10, 20]\n"), said.stderr
    assert (tmp_path / "died").exists()


@pytest.mark.usefixtures("cluster")
def test_an_error_is_that_of_the_function() -> None:
    with spreading(1) as spread:
        with pytest.raises(ZeroDivisionError, match=r"^integer .*division or modulo by zero$"):
            list(spread(fails, range(4)))
        assert list(spread(fails, [0, 1])) == [3, 6]
    with pytest.raises(ValueError, match=r"^actors: 3 need 3 CPUs, the cluster has 2; take fewer"):
        spreading(3).__enter__()


def test_what_is_wrong_is_said_in_one_line(monkeypatch: Any) -> None:
    with pytest.raises(ValueError, match=r"^actors must be a whole number of at least 0, got -1$"):
        spreading(-1).__enter__()
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"^actors: need Ray, which is not installed: pip"):
        spreading(1).__enter__()


@pytest.mark.usefixtures("cluster")
def test_labels_are_the_same_with_actors(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(teach, "PIECE", 64)
    few = [{"positions": 300, "points": [2, 4], "max_value": [4]}]
    command = ["--config", "small", "--set", "updates=0", "--set", f"rounds={json.dumps([few])}"]
    for name, actors in (("one", "0"), ("two", "2")):
        given = ["--actors", actors, "--no-progress", "--out", str(tmp_path / name)]
        assert teach.main([*command, *given]) == 0
    one, two = (tmp_path / name / "solved-0.safetensors" for name in ("one", "two"))
    assert file_digest(one) == file_digest(two)


@pytest.mark.usefixtures("cluster")
def test_attacks_are_the_same_with_actors(tmp_path: Path) -> None:
    more = [x for s in ("exact.starts=50", "lookahead=5", "seeds=[0, 1]") for x in ("--set", s)]
    for name, actors in (("here", "0"), ("there", "2")):
        given = ["--out", str(tmp_path / name), "--actors", actors, "--no-progress"]
        assert attack(["zeillinger", *LESS, *more, *given]) == 0
    files = ["exact.json", "scripted.json", "seed-0.json", "seed-1.json", "result.json"]
    files += [f"seed-{seed}/policy.safetensors" for seed in (0, 1)]
    for file in files:
        assert file_digest(tmp_path / "here" / file) == file_digest(tmp_path / "there" / file)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--actors", "-1"], "attack: actors must be a whole number of at least 0, got -1"),
    ],
)
def test_the_command_line_refuses_in_one_line(more: list[str], message: str, capsys: Any) -> None:
    assert attack(["zeillinger", *more]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nobody_is_left_after_a_signal(tmp_path: Path, number: int) -> None:
    """With a cluster of its own, and every finished shard in its place."""
    pytest.importorskip("ray", reason=NEEDS_RAY)
    mark = uuid.uuid4().hex
    environment = {**os.environ, MARK: mark, "SPT_NOENV": "1"}
    environment.pop("RAY_ADDRESS", None)
    command = [sys.executable, "-m", "sb3_ext.teach", "--actors", "2"]
    command += ["--no-progress", "--out", str(tmp_path / "data")]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: len(marked(mark, COMMAND)) == 2, 60)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number, said
    assert wait_until(lambda: not marked(mark), 60), marked(mark)
