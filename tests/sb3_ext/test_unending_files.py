"""Files that never end: a pipe in place of one that is read is refused before it is opened."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import resgym
from resgym.benchmark import Solved
from resgym.cli import main as resgym_main
from resgym.scoreboard import read_rows
from sb3_ext.checkpoints.policy_file import MODEL
from sb3_ext.config.reading import read_mapping
from sb3_ext.runs.checkpoint import MANIFEST, STATE
from sb3_ext.train.loading import load_policy


@pytest.fixture(autouse=True)
def _never_waits() -> Iterator[None]:
    """Opening a pipe waits for a writer for ever; a signal ends what would."""

    def end(*_: Any) -> None:
        raise AssertionError("a pipe was opened")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def card(path: Path) -> object:
    path.rename(path.with_name(MODEL))
    return load_policy(path.parent)


def checkpoint(path: Path) -> object:
    path.rename(path.with_name(MANIFEST))
    path.with_name(STATE).write_text("{}")
    return load_policy(path.parent)


READERS: dict[str, Callable[[Path], object]] = {
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
def test_a_pipe_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match=r"regular file|no such file|is missing") as error:
        READERS[name](tmp_path / name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("file", ["/dev/zero", "pipe"])
def test_the_option_starts_takes_files_alone(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    assert resgym_main(["rho", "random", "random", "--games", "4", "--starts", file]) == 2
    assert f"starts: got '{file}'; expected a regular file" in capsys.readouterr().err
