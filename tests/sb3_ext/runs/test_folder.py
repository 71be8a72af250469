"""The folder of a run: one process at a time, nothing left behind, lines that are whole."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from sb3_ext.runs.checkpoint import load_checkpoint, save_checkpoint
from sb3_ext.runs.files import CheckpointWarning, FolderInUseError, RunFolder, write_durably
from sb3_ext.train.quickstart import main as quickstart
from sb3_ext.two_player.job import main as two_player
from tests.sb3_ext.runs.killed import full, held_by_another


def windows(monkeypatch):
    """As there: directories cannot be opened, and only what is open for writing is flushed."""
    opened = os.open
    flush = os.fsync

    def open_file(path, flags, *more, **keywords):
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, flags, *more, **keywords)

    def flush_file(descriptor):
        with open(f"/proc/self/fdinfo/{descriptor}") as about:
            flags = int(about.readlines()[1].split()[1], 8)
        if flags & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(9, "Bad file descriptor")
        flush(descriptor)

    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(os, "fsync", flush_file)


@pytest.mark.skipif(not Path("/proc/self/fdinfo").exists(), reason="needs /proc")
def test_files_and_checkpoints_are_written_on_windows(tmp_path, monkeypatch):
    windows(monkeypatch)
    write_durably(tmp_path / "a.txt", "a")
    save_checkpoint(tmp_path / "checkpoint-000000000001", {"a": {"x": torch.ones(2)}})
    assert load_checkpoint(tmp_path)["a"]["x"].tolist() == [1, 1]


def test_a_folder_is_free_again_when_its_process_is_killed(tmp_path):
    message = "in use by another process"
    with (
        held_by_another(tmp_path),
        pytest.raises(FolderInUseError, match=message),
        RunFolder(tmp_path),
    ):
        pass
    with RunFolder(tmp_path), RunFolder(tmp_path):  # within one process blocks may be nested
        pass
    with held_by_another(tmp_path):  # and free again after the blocks
        pass


@pytest.mark.parametrize(
    "command",
    [
        lambda folder: two_player(["--config", "small", "--smoke", "--out", folder]),
        lambda folder: two_player(["--resume", folder]),
        lambda folder: quickstart(["--updates", "2", "--games", "2", "--out", folder]),
    ],
)
def test_every_driver_keeps_out_of_the_folder_of_another(command, tmp_path, capsys):
    with held_by_another(tmp_path):
        assert command(str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{tmp_path} is in use by another process" in said
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_block_that_fails_at_once_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError), RunFolder(tmp_path / "a" / "b"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with suppress(RuntimeError), RunFolder(tmp_path / "a" / "b") as folder:
        folder.append("result.yml", {})
        raise RuntimeError
    assert (tmp_path / "a" / "b" / "result.yml").exists()
    with suppress(RuntimeError), RunFolder(tmp_path / "c") as folder:
        (folder.path / "inner").mkdir()
        folder.append("result.yml", {})
        folder.discard()
        raise RuntimeError
    assert not (tmp_path / "c").exists()
    with RunFolder(tmp_path / "a" / "b") as folder:
        folder.discard()
    assert (tmp_path / "a" / "b" / "result.yml").exists()  # which was there


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("file/run", "file/run cannot be written to: "),
        ("file", "must be a folder, .*file is a file"),
        ("x" * 300, "cannot be written to: File name too long"),
    ],
)
def test_a_folder_that_cannot_be_made_is_one_line(tmp_path, name, message):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=f"out: .*{message}"), RunFolder(tmp_path / name):
        pass


def test_a_full_disk_ends_no_run(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "open", full)
    with pytest.warns(CheckpointWarning, match="no line was written: .*No space left"):
        RunFolder(tmp_path).append("log.jsonl", {"step": 2})


def test_several_writers_of_one_file_do_not_meet(tmp_path):
    def write(number):
        for _ in range(20):
            write_durably(tmp_path / "best.yml", f"{number}\n" * 1000)

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(write, range(8)))
    assert len(set((tmp_path / "best.yml").read_text().split())) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["best.yml"]
