"""One process at a time in a folder."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager

import pytest

from sb3_ext.checkpoints.folder_lock import FolderInUseError, sole_writer
from sb3_ext.studies.teach.cli import main

HOLD = """
import sys
from pathlib import Path
from sb3_ext.checkpoints.folder_lock import sole_writer
with sole_writer(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by_another(folder):
    """Another process is at work in the folder; it is killed at the end, if it still lives."""
    pytest.importorskip("fcntl")
    command = [sys.executable, "-c", HOLD, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield
        finally:
            process.kill()


def test_a_folder_is_free_again_when_its_process_is_killed(tmp_path):
    message = "being written to by another process"
    with (
        held_by_another(tmp_path),
        pytest.raises(FolderInUseError, match=message),
        sole_writer(tmp_path),
    ):
        pass
    with sole_writer(tmp_path):
        pass
    with sole_writer(tmp_path):  # and free again after the block
        pass


def test_a_second_command_is_refused_in_one_line(tmp_path, capsys):
    out = tmp_path / "data"
    arguments = ["generate", "--config", "small", "--positions", "50", "--workers", "1"]
    arguments += ["--out", str(out), "--no-progress"]
    assert main(arguments) == 0
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    capsys.readouterr()
    with held_by_another(out):
        assert main(arguments) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert f"teach generate: out: {out} is being written to" in said
        assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    assert main(arguments) == 0
