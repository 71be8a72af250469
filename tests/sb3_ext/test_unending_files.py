"""Files that never end: a pipe in place of one that is read is refused before it is opened."""

import os
import signal

import pytest

import resgym
from resgym.benchmark import Solved
from resgym.scoreboard import read_rows
from sb3_ext.checkpoints.policy_file import MODEL
from sb3_ext.config.sections import read_mapping
from sb3_ext.runs.checkpoint import MANIFEST, STATE
from sb3_ext.train.loading import load_policy


@pytest.fixture(autouse=True)
def _never_waits():
    """Opening a pipe waits for a writer for ever; a signal ends what would."""

    def end(*_):
        raise AssertionError("a pipe was opened")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def card(path):
    path.rename(path.with_name(MODEL))
    return load_policy(path.parent)


def checkpoint(path):
    path.rename(path.with_name(MANIFEST))
    path.with_name(STATE).write_text("{}")
    return load_policy(path.parent)


READERS = {
    "starts.txt": lambda path: resgym.rho("random", "random", games=4, starts=path),
    "points.poly": resgym.parse,
    "board.json": read_rows,
    "config.yml": read_mapping,
    "model.zip": load_policy,
    "model.safetensors": load_policy,
    "solved.npz": Solved.load,
    "card": card,
    "checkpoint": checkpoint,
}


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_is_refused_in_one_line(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match=r"regular file|no such file|is missing") as error:
        READERS[name](tmp_path / name)
    assert "\n" not in str(error.value)
