"""The scoreboard: its figures against the solver's, its file and pages, its command."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pytest

import resgym
from resgym import scoreboard
from resgym.scoreboard import POINTS, Figure, Row, filled, measure, read_rows, shipped_rows
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


def test_the_optimal_host_has_all_of_the_optimum():
    row = measure("optimal", 5, number=8)
    assert row.worst.share == pytest.approx((1.0, 1.0))
    assert row.choose_first.share[1] < 1.0  # it plays for the worst case


def test_hosts_that_draw_have_no_worst_case():
    row = measure("random", 5, number=4)
    assert row.worst is None
    assert row.random.rho[0] > 0


def test_what_was_given_up_is_a_range():
    either = Figure((0.0036, 0.0049), (0.003, 0.006), (116.87, 124.57), (0.0624, 0.0849))
    assert either.cells() == ("0.0036 to 0.0049", "6.2 to 8.5 %", "116.87 to 124.57")
    settled = Figure((0.05, 0.05), (0.04, 0.06), (20.0, 20.0), None)
    assert settled.cells() == ("0.0500 ± 0.0100", "-", "20.00")


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


def test_the_page_shows_the_file():
    text = (ROOT / "docs" / "scoreboard.md").read_text(encoding="utf-8")
    assert "\n| taught |" in text.split("<!-- scoreboard, 20 points")[1]
    assert filled(text, shipped_rows()) == text
    assert filled(text, [replace(row, host="x") for row in shipped_rows()]) != text


def test_a_marker_may_name_the_hosts_of_its_table():
    page = "<!-- scoreboard, 20 points: robust, taught -->\n<!-- end of scoreboard -->"
    hosts = [line.split(" | ")[0] for line in filled(page, shipped_rows()).splitlines()[3:-1]]
    assert hosts == ["| taught", "| robust"]


def test_a_row_is_added_and_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(scoreboard, "measure", partial(measure, number=4))
    file, page = tmp_path / "mine.json", tmp_path / "page.md"
    page.write_text("a\n<!-- scoreboard, 5 points -->\nold\n<!-- end of scoreboard -->\nb\n")
    options = ["--file", str(file), "--name", "mine", "--points", "5"]
    code, out, err = run(capsys, "scoreboard", "add", "all_coord", *options)
    assert (code, err) == (0, "measuring mine, 5 points\n")
    assert "mine " in out
    assert "taught " in out
    first = read_rows(file)
    assert [(row.host, row.points, row.cut) for row in first] == [("mine", 5, 4)]
    again = ["scoreboard", "add", "zeillinger", *options, "--page", str(page), "--json"]
    assert run(capsys, *again)[0] == 0
    (second,) = read_rows(file)
    assert second.worst.rho[0] > first[0].worst.rho[0] == 0.0
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("a", "b")
    assert any(line.startswith("| mine |") for line in lines)


@pytest.mark.parametrize(
    "order",
    [
        "--points 5 --file f.json add random",
        "--file f.json add --points 5 random",
        "add random --file f.json --points 5",
    ],
)
def test_options_stand_on_both_sides(order, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scoreboard, "measure", partial(measure, number=2))
    assert run(capsys, "scoreboard", *order.split())[0] == 0
    assert [(row.host, row.points) for row in read_rows(Path("f.json"))] == [("random", 5)]


def test_a_row_that_another_one_adds_meanwhile_is_kept(tmp_path, monkeypatch, capsys):
    file = tmp_path / "board.json"

    def slow(host, points, **options):
        file.write_text(json.dumps([{**ROW, "host": "other"}]))
        return measure(host, points, number=2)

    monkeypatch.setattr(scoreboard, "measure", slow)
    words = ["scoreboard", "add", "random", "--points", "5", "--file", str(file)]
    assert run(capsys, *words)[0] == 0
    assert {row.host for row in read_rows(file)} == {"other", "random"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add"], "arguments are required: MODEL"),
        (["--page", "none.md", "add", "zeillinger"], "none.md"),
        (["add", "zeilinger"], "did you mean 'zeillinger'"),
        (["ad", "zeillinger"], "invalid choice: 'ad'"),
        (["--file", "a.txt"], "file must end in one of .json"),
        (["--points", "7"], "invalid choice: 7"),
        (["--page", "page.md"], "page: there is no '<!-- scoreboard"),
    ],
)
def test_bad_input(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("page.md").write_text("nothing\n")
    code, _, err = run(capsys, "scoreboard", *arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


ROW = asdict(Row("a", 5, 1, 0, "0", "1", 0, 0, None, *[Figure((1, 1), (1, 1), (1, 1), None)] * 2))


@pytest.mark.parametrize(
    "content",
    ["{", "7", "{}", "[1]", "[null]", '[{"host": "a"}]', "[" * 9999]
    + [
        json.dumps([{**ROW, **changed}])
        for changed in ({"points": "5"}, {"random": None}, {"random": {}})
    ],
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
