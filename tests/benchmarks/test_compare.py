"""Rates of two trees in turn: what the interval says, what is run where, what is refused."""

import re
import subprocess
from unittest.mock import Mock

import pytest

from benchmarks import compare
from benchmarks.results import ROOT
from tests.resgym.commands import run


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


@pytest.mark.parametrize(
    ("pairs", "allowed", "verdict"),
    [
        ([0.90, 0.95, 0.97], 0.0, "slower"),
        ([0.90, 0.95, 0.97], 0.05, "slower, within what is allowed"),
        ([0.90, 0.95, 1.01], 0.0, "no difference shown"),
        ([1.02, 1.30, 1.01], 0.0, "faster"),
    ],
)
def test_a_difference_is_said_only_where_the_interval_shows_it(pairs, allowed, verdict):
    assert compare.Ratio(2 * pairs).verdict(allowed) == verdict


def fake(monkeypatch, this, base):
    """Rates by name and turn in place of processes; returns the folders that were asked."""
    asked = []

    def rate(folder, name, seconds):
        asked.append((folder, name))
        number = sum(each == (folder, name) for each in asked)
        return (this if folder == ROOT else base)(name, number)

    monkeypatch.setattr(compare, "rate", rate)
    return asked


def test_trees_take_turns_and_the_code_is_that_of_a_loss(monkeypatch, capsys):
    this = lambda name, k: 80.0 if name == "games3" else 100.0 + k  # noqa: E731
    asked = fake(monkeypatch, this, lambda *_: 100.0)
    arguments = [str(ROOT.parent / "base"), "--only", "games3", "proofs", "--pairs", "6"]
    monkeypatch.setattr(compare.Path, "is_dir", lambda path: True)
    assert compare.main(arguments) == 1
    order = [folder == ROOT for folder, name in asked if name == "games3"]
    assert order == [False, True, True, False] * 3 + [False, True]
    _, loss, gain = capsys.readouterr().out.splitlines()
    assert " 0.800  (0.800 to 0.800, missed in 3.1 %)  slower; base 100" in loss
    assert re.match("proofs       1.045  [(]1.020 to 1.070.*  faster; ", gain)
    assert compare.main([*arguments, "--allowed", "0.25"]) == 0


@pytest.mark.long
@pytest.mark.parametrize("name", ["single", "two_player", "proofs"])
def test_rates_are_measured_in_a_process_of_the_tree(name):
    assert compare.rate(ROOT, name, 0.01) > 0


def test_a_rate_that_a_tree_has_not_is_named(monkeypatch, capsys):
    none = Mock(side_effect=compare.NotMeasured("ModuleNotFoundError: No module named 'resgym'"))
    fake(monkeypatch, lambda *_: 1.0, none)
    monkeypatch.setattr(compare.Path, "is_dir", lambda path: True)
    assert compare.main(["base", "--only", "single"]) == 0
    assert "single      not measured: ModuleNotFoundError" in capsys.readouterr().out


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


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["no-such-commit"], "BASE must be a commit or the folder of a checkout"),
        (["HEAD", "--pairs", "5"], "--pairs"),
        (["HEAD", "--allowed", "2"], "--allowed must be from 0 to 1"),
    ],
)
def test_bad_arguments(arguments, named, capsys):
    code, _, err = run(capsys, *arguments, main=compare.main)
    assert (code, err.count("\n"), named in err) == (2, 1, True)
