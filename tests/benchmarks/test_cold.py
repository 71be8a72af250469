"""First answers: what is run where, and what is said of it."""

from pathlib import Path

import pytest

from benchmarks import cold


@pytest.mark.parametrize(("taken", "code"), [(1.0, 0), (9.0, 1)])
def test_cold_runs_begin_with_an_empty_folder(monkeypatch, capsys, taken, code):
    folders = []

    def seconds(arguments, caches):
        folders.append((caches, any(Path(caches).iterdir())))
        (Path(caches) / "kernel").touch()
        return taken

    monkeypatch.setattr(cold, "seconds", seconds)
    assert cold.main(["--only", "make_vec", "--runs", "3"]) == code
    warm = folders[0][0]
    assert [filled for folder, filled in folders if folder != warm] == [False] * 6
    assert [filled for folder, filled in folders if folder == warm] == [False] + [True] * 7
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split()[:3] == ["make_vec", *([">", "9.00"] if code else ["1.00", "1.0"])]
