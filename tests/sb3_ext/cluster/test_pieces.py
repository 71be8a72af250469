"""An ordered map over pieces of work in other processes, and the commands that use it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sb3_ext.attack.attack import main as attack
from sb3_ext.cluster import connection as pieces
from sb3_ext.cluster.connection import AHEAD, spreading
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
    one, two = (tmp_path / name / "solved-0.npz" for name in ("one", "two"))
    assert file_digest(one) == file_digest(two)


@pytest.mark.usefixtures("cluster")
def test_attacks_are_the_same_with_actors(tmp_path: Path) -> None:
    more = [x for s in ("exact.starts=50", "lookahead=5", "seeds=[0, 1]") for x in ("--set", s)]
    for name, actors in (("here", "0"), ("there", "2")):
        given = ["--out", str(tmp_path / name), "--actors", actors, "--no-progress"]
        assert attack(["zeillinger", *LESS, *more, *given]) == 0
    for file in ("result.json", *(f"seed-{seed}/policy.safetensors" for seed in (0, 1))):
        assert file_digest(tmp_path / "here" / file) == file_digest(tmp_path / "there" / file)
