"""An ordered map over pieces of work in other processes, and the commands that use it."""

import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from sb3_ext.attack.attack import main as attack
from sb3_ext.cluster import connection as pieces
from sb3_ext.cluster.connection import AHEAD, spreading
from sb3_ext.runs.files import file_digest
from sb3_ext.teach import teach
from tests.sb3_ext.cluster.processes import MARK, marked, wait_until
from tests.sb3_ext.helpers import LESS

COMMAND = b"ray::do_piece"


def workers():
    return marked(os.environ[MARK], COMMAND)


def waits_for_the_third(folder, piece):
    """The first piece ends when the third has been done."""
    if piece == 2:
        (folder / "third").touch()
    assert piece or wait_until((folder / "third").exists)
    return piece, os.getpid(), torch.get_num_threads()


def dies_once(folder, piece):
    died = folder / "died"
    if piece == 1 and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 10 * piece


def dies(piece):
    os.kill(os.getpid(), signal.SIGKILL)


def fails(piece):
    return 6 // (2 - piece)


def doubled(array):
    array *= 2
    return array


@pytest.mark.usefixtures("cluster")
def test_results_come_in_the_order_of_the_pieces(tmp_path):
    asked = []

    def all_pieces():
        for piece in range(100):
            asked.append(piece)
            yield piece

    with spreading(2) as spread:
        results = spread(partial(waits_for_the_third, tmp_path), all_pieces())
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
def test_a_piece_whose_process_dies_is_done_again(tmp_path, monkeypatch):
    with spreading(2) as spread:
        assert list(spread(partial(dies_once, tmp_path), range(4))) == [0, 10, 20, 30]
        monkeypatch.setattr(pieces, "LOST_IN_A_ROW", 2)
        with pytest.raises(ChildProcessError, match=r"^piece 0: 2 times in a row") as caught:
            list(spread(dies, [1]))
        assert "\n" not in str(caught.value)
    assert wait_until(lambda: not workers())


@pytest.mark.usefixtures("cluster")
def test_an_error_is_that_of_the_function():
    with spreading(1) as spread:
        with pytest.raises(ZeroDivisionError, match=r"by zero$"):
            list(spread(fails, range(4)))
        assert list(spread(fails, [0, 1])) == [3, 6]
    with pytest.raises(ValueError, match=r"^actors: 3 need 3 CPUs, the cluster has 2; take fewer"):
        spreading(3).__enter__()


@pytest.mark.usefixtures("cluster")
def test_of_abandoned_work_only_what_takes_long_is_cancelled(monkeypatch):
    """Ray may end the program where a task ends while it is cancelled."""
    import ray

    spy = Mock(wraps=ray.cancel)
    monkeypatch.setattr(ray, "cancel", spy)
    monkeypatch.setattr(pieces, "GRACE_SECONDS", 3.0)
    sleep = ray.remote(lambda seconds: time.sleep(seconds))
    work = [sleep.remote(seconds) for seconds in (0, 60, 60)]
    pieces.abandon(ray, work)
    assert [call.args for call in spy.mock_calls] == [(work[2],), (work[1],)]


def test_what_is_wrong_is_said_in_one_line(monkeypatch):
    with pytest.raises(ValueError, match=r"^actors must be a whole number of at least 0, got -1$"):
        spreading(-1).__enter__()
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"^actors: need Ray, which is not installed: pip"):
        spreading(1).__enter__()


FEW = [{"positions": 300, "points": [2, 4], "max_value": [4]}]
SOLVED = ["solved-0.npz"]
FOUND = ["result.json", "seed-0/policy.safetensors", "seed-1/policy.safetensors"]


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("command", "given", "settings", "files"),
    [
        (teach.main, ["--config", "small"], ["updates=0", f"rounds={json.dumps([FEW])}"], SOLVED),
        (attack, ["zeillinger", *LESS], ["exact.starts=50", "lookahead=5", "seeds=[0, 1]"], FOUND),
    ],
)
def test_results_are_the_same_with_actors(command, given, settings, files, tmp_path, monkeypatch):
    monkeypatch.setattr(teach, "PIECE", 64)
    monkeypatch.chdir(tmp_path)
    more = [part for each in settings for part in ("--set", each)]
    for name, actors in (("here", "0"), ("there", "2")):
        options = ["--out", str(tmp_path / name), "--actors", actors, "--no-progress"]
        assert command([*given, *more, *options]) == 0
    for file in files:
        assert file_digest(Path("here", file)) == file_digest(Path("there", file))
