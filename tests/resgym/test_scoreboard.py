"""The scoreboard: its file and page, its command."""

import json
from dataclasses import asdict, replace

import pytest
import torch

import resgym
from resgym import scoreboard
from resgym.benchmark import load, tasks
from resgym.scoreboard import check, read_rows, shipped_rows
from tests.resgym.commands import run

EVERYWHERE = ("moves-20", "first-20", "random-20")


def test_the_file_holds_every_shipped_host(shipped_players):
    rows = shipped_rows()
    wanted = {(name, task) for name in shipped_players["host"] for task in EVERYWHERE}
    assert wanted <= {(row.name, row.task) for row in rows}
    assert {row.version for row in rows} == {resgym.__version__}
    digests = {load(tasks.TASKS[row.task].part).digest() for row in rows}
    assert {row.data_sha256 for row in rows} == digests


@pytest.mark.parametrize("task", [pytest.param("worst-5", marks=pytest.mark.long), "moves-20"])
def test_the_rows_are_what_comes_out_today(task):
    (saved,) = [row for row in shipped_rows() if (row.name, row.task) == ("zeillinger", task)]
    again = check(replace(saved, reproduced=False))
    assert again == replace(saved, reproduced=True)
    assert not check(replace(saved, counts=saved.counts[::-1])).reproduced


def test_the_table_has_a_row_for_each_result():
    heading, *rows = shipped_rows().table_rows()
    assert heading == ("task", "player", "result")
    assert [row[0] for row in rows] == sorted((row[0] for row in rows), key=[*tasks.TASKS].index)
    assert rows[0][:2] == ("worst-5", "optimal")


def test_a_result_is_added_replaced_and_checked(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tasks, "load", lambda part: load(part).select(torch.arange(4)))
    file = tmp_path / "mine.json"
    options = ["--file", str(file), "--name", "mine", "--task", "worst-5", "--track", "script"]
    code, out, err = run(capsys, "scoreboard", "add", "all_coord", *options, "--steps", "7")
    assert (code, err) == (0, "measuring mine, worst-5\n")
    assert " mine " in out
    assert " taught " in out
    assert "worst-20" not in out  # only the task that was asked for
    assert "reproduced" not in out  # it was not measured twice
    (first,) = read_rows(file)
    found = first.name, first.player, first.task, first.value, first.track, first.steps
    assert found == ("mine", "all_coord", "worst-5", 0.0, "script", 7)
    assert run(capsys, "scoreboard", "add", "zeillinger", *options, "--json")[0] == 0
    (second,) = read_rows(file)
    assert second.value > first.value
    assert not second.reproduced
    code, out, _ = run(capsys, "scoreboard", "check", str(file))
    assert (code, "reproduced: True" in out) == (0, True)
    assert read_rows(file)[0] == replace(second, reproduced=True)
    scoreboard.write_rows(file, [replace(second, counts=[1, 2, 3, 4])])
    assert run(capsys, "scoreboard", "check", str(file))[0] == 1
    assert not read_rows(file)[0].reproduced


ROW = {"name": "a", "player": "a", "task": "worst-5", "value": 1.0, "highest": 1.0}
ROW |= {"interval_95": [1.0, 1.0], "details": {}, "counts": [], "data_sha256": "", "version": ""}


@pytest.mark.parametrize(
    "content",
    ["{", "7", "[1]", "[null]", '[{"name": "a"}]', "[" * 9999]
    + [json.dumps([{**ROW, **changed}]) for changed in ({"value": None}, {"name": []})],
)
def test_files_that_are_no_scoreboard(content, tmp_path, capsys):
    file = tmp_path / "board.json"
    file.write_text(json.dumps([ROW]))
    assert [asdict(row)["task"] for row in read_rows(file)] == ["worst-5"]  # the control
    file.write_text(content)
    code, _, err = run(capsys, "scoreboard", "--file", str(file))
    assert code == 2
    assert "is not a scoreboard" in err
    assert err.count("\n") == 1
