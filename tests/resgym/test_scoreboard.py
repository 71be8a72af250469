"""The scoreboard: its figures against the solver's, its file and pages, its command."""

import json
import subprocess
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest

import resgym
from resgym import scoreboard
from resgym.scoreboard import POINTS, Figure, Row, measure, merged, read_rows, shipped_rows, table
from tests.resgym.commands import run

ROOT = Path(__file__).resolve().parents[2]


def test_figures_are_those_of_the_solver():
    """`resgym.solve` searches each start by itself, with other code."""
    row = measure("zeillinger", 5, number=12)
    starts = resgym.measure.rho.rho_starts(resgym.GameSpec(max_num_points=5), 12, row.seed)
    forced, least, quickest = (
        [resgym.solve(points, **against).value for points in starts.point_lists()]
        for against in ({"host": "zeillinger"}, {}, {"agent": "choose_first"})
    )
    assert row.worst.moves == (sum(forced) / 12,) * 2
    assert row.worst.rho == pytest.approx((12 / sum(forced),) * 2)
    assert row.worst.share == pytest.approx((sum(least) / sum(forced),) * 2)
    played = resgym.rho("zeillinger", "choose_first", games=12, max_num_points=5, seed=row.seed)
    assert row.choose_first.rho == (played.rho, played.rho)
    assert row.choose_first.share == pytest.approx((played.rho * sum(quickest) / 12,) * 2)
    assert (row.cut, row.given_up, row.random.share) == (0, 0, None)


def test_the_file_holds_every_shipped_host():
    # In a process of its own: other tests add players to the registry of this one.
    code = "from resgym.players import *; print(*host_names())"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rows = shipped_rows()
    assert {(row.host, row.points) for row in rows} >= {
        (name, points) for name in names.stdout.split() for points in POINTS
    }
    assert {(row.starts, row.seed) for row in rows} == {(scoreboard.STARTS, scoreboard.SEED)}
    assert {row.version for row in rows} == {resgym.__version__}


@pytest.mark.parametrize("host", ["zeillinger", "random"])
def test_the_rows_are_what_comes_out_today(host):
    (saved,) = [row for row in shipped_rows() if (row.host, row.points) == (host, 5)]
    assert measure(host, 5) == saved


@pytest.mark.parametrize("points", POINTS)
def test_the_page_shows_the_file(points):
    text = (ROOT / "docs" / "scoreboard.md").read_text(encoding="utf-8")
    shown = merged(row for row in shipped_rows() if row.points == points)
    assert f"{table(shown)}\n" in text


def test_a_row_is_added_and_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(scoreboard, "measure", partial(measure, number=4))
    file = tmp_path / "mine.json"
    options = ["--file", str(file), "--name", "mine", "--points", "5"]
    code, out, err = run(capsys, "scoreboard", "add", "all_coord", *options)
    assert (code, err) == (0, "measuring mine, 5 points\n")
    assert "mine " in out
    assert "taught " in out
    first = read_rows(file)
    assert [(row.host, row.points, row.cut) for row in first] == [("mine", 5, 4)]
    again = ["scoreboard", "add", "zeillinger", *options, "--json"]
    assert run(capsys, *again)[0] == 0
    (second,) = read_rows(file)
    assert second.worst.rho[0] > first[0].worst.rho[0] == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add"], "action must be 'add MODEL', got 'add'"),
        (["add", "zeilinger"], "did you mean 'zeillinger'"),
        (["--file", "a.txt"], "file must end in one of .json"),
    ],
)
def test_bad_input(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, "scoreboard", *arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


ROW = asdict(Row("a", 5, 1, 0, "0", "1", 0, 0, None, *[Figure((1, 1), (1, 1), (1, 1), None)] * 2))


@pytest.mark.parametrize(
    "content",
    ["{", "7", "[1]", "[null]", '[{"host": "a"}]', "[" * 9999]
    + [json.dumps([{**ROW, **changed}]) for changed in ({"random": None}, {"random": {}})],
)
def test_files_that_are_no_scoreboard(content, tmp_path, capsys):
    file = tmp_path / "board.json"
    file.write_text(json.dumps([ROW]))
    assert len(read_rows(file)) == 1  # the control
    file.write_text(content)
    code, _, err = run(capsys, "scoreboard", "--file", str(file))
    assert code == 2
    assert "is not a scoreboard" in err
    assert err.count("\n") == 1
