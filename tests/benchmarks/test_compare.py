"""Rates of two trees in turn: what the interval says, what is run where, what is refused."""

import re
import subprocess

import pytest

from benchmarks import compare
from benchmarks.results import ROOT


def test_the_interval_misses_as_often_as_it_says():
    six = compare.Ratio([1.1, 0.9, 1.0, 1.2, 0.8, 1.3])
    assert (six.low, six.high, six.median) == (0.8, 1.3, pytest.approx(1.05))
    assert six.chance == 2 / 2**6  # all six on one side of the true median
    # Without the outermost of thirteen it misses less often than asked, of twelve more often.
    thirteen = compare.Ratio([float(k) for k in range(13)])
    assert (thirteen.low, thirteen.high) == (1.0, 11.0)
    assert thirteen.chance == 2 * (1 + 13) / 2**13 < 0.05 / 8 < 2 * (1 + 12) / 2**12
    twelve = compare.Ratio([float(k) for k in range(12)])
    assert (twelve.low, twelve.high) == (0.0, 11.0)


def test_trees_take_turns_and_the_code_is_that_of_a_loss(monkeypatch, capsys):
    asked = []

    def rate(folder, name, seconds):
        asked.append((folder, name))
        slow, quick = 80.0, 100.0 + asked.count((folder, name))
        return 100.0 if folder != ROOT else slow if name == "games3" else quick

    monkeypatch.setattr(compare, "rate", rate)
    arguments = [str(ROOT.parent / "base"), "--only", "games3", "proofs", "--pairs", "6"]
    monkeypatch.setattr(compare.Path, "is_dir", lambda path: True)
    assert compare.main(arguments) == 1
    order = [folder == ROOT for folder, name in asked if name == "games3"]
    assert order == [False, True, True, False] * 3 + [False, True]
    _, loss, gain = capsys.readouterr().out.splitlines()
    assert " 0.800  (0.800 to 0.800, missed in 3.1 %)  slower; base 100" in loss
    assert re.match("proofs       1.045  [(]1.020 to 1.070.*  faster; ", gain)
    assert compare.main([*arguments, "--allowed", "0.25"]) == 0
    assert "slower, within what is allowed" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize("name", ["single", "two_player", "proofs"])
def test_rates_are_measured_in_a_process_of_the_tree(name):
    assert compare.rate(ROOT, name, 0.01) > 0


def test_a_commit_is_laid_out_and_taken_away(tmp_path, monkeypatch):
    def git(*words):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.check_output(command, cwd=tmp_path, text=True)

    git("init", "-q")
    (tmp_path / "file").write_text("old")
    git("add", "file")
    git("commit", "-qm", "one")
    (tmp_path / "file").write_text("new")
    monkeypatch.setattr(compare, "ROOT", tmp_path)
    with compare.tree("HEAD") as folder:
        assert (folder / "file").read_text() == "old"
    assert not folder.exists()
    assert len(git("worktree", "list").splitlines()) == 1
