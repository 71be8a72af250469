"""Folders of runs and models: what is listed, what is read, what is never reached."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from resgym.web.runs import MAX_LINES, MAX_WHOLE, list_models, list_runs, read_curves, scoreboard


@pytest.fixture
def folder(tmp_path):
    top = tmp_path / "runs"
    (top / "a" / "b").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "rho.json").write_text("[]")
    (tmp_path / "outside" / "model.zip").write_bytes(b"")
    (top / "linked").symlink_to(tmp_path / "outside")
    (top / "linked.zip").symlink_to(tmp_path / "outside" / "model.zip")
    return top


def test_links_and_hidden_folders_are_not_followed(folder):
    (folder / ".hidden").mkdir()
    for place in (folder / "a" / "b", folder / ".hidden"):
        (place / "metrics.jsonl").write_text("")
        (place / "best.zip").write_bytes(b"")
    (folder / "c").mkdir()
    (folder / "c" / "manifest.json").write_text("{}")
    assert list(list_runs(folder)) == ["a/b"]
    assert list(list_models(folder)) == ["a/b/best.zip", "c"]
    assert list_models(None) == {}


def test_odd_names_and_pipes_are_left_out(folder):
    os.mkfifo(folder / "a" / "rho.json")
    assert (list_runs(folder), read_curves(folder / "a")) == ({}, {})
    (folder / "a" / "b" / "rho.json").write_text("[]")
    for name in (b"\xff", b"two\nlines"):
        odd = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
        odd.mkdir()
        (odd / "rho.json").write_text("[]")
        (folder / (odd.name + ".zip")).write_bytes(b"")
    assert list(list_runs(folder)) == ["a/b"]
    assert list_models(folder) == {}


def test_curves_leave_out_what_is_damaged(folder):
    run = folder / "a"
    lines = ['{"step": 1, "loss": 0.5, "name": "x"}', "[" * 100_000, '{"step": 2, "loss": NaN}']
    (run / "metrics.jsonl").write_text("\n".join([*lines, '{"step": 3, "lo']))
    history = [
        {"updates": 10, "rho": {"random": 0.25}},
        {"updates": 20, "rho": {"random": 0.5}, "interval_95": {"random": [0.4, 0.6]}},
        {"updates": 30, "rho": {"random": 0.5}, "interval_95": {"random": [0.4, "x"]}},
        {"updates": "x", "rho": {"random": 1}},
        7,
    ]
    (run / "rho.json").write_text(json.dumps(history))
    assert read_curves(run) == {
        "rho/random": {
            "x": [10, 20, 30],
            "y": [0.25, 0.5, 0.5],
            "band": [None, [0.4, 0.6], None],
        },
        "loss": {"x": [1, 2], "y": [0.5, None]},
    }
    (row,) = scoreboard(folder)
    assert (row["name"], row["rho"], row["step"]) == ("a", {"random": 1}, None)


def test_the_scoreboard_has_the_last_measurement(folder):
    lines = [json.dumps({"step": k, "values": {"host-agent": k / 10}}) for k in range(1, 6)]
    (folder / "a" / "evaluations.jsonl").write_text("\n".join(lines) + "\n" + '{"step": 6, "val')
    (row,) = scoreboard(folder)
    assert (row["step"], row["rho"]) == (5, {"host-agent": 0.5})


def test_a_long_log_is_read_in_parts(folder):
    filler = "x" * 400
    count = MAX_WHOLE // 400
    with (folder / "a" / "metrics.jsonl").open("w") as file:
        file.writelines(f'{{"step": {k}, "loss": {k}, "note": "{filler}"}}\n' for k in range(count))
    curve = read_curves(folder / "a")["loss"]
    assert MAX_LINES * 0.9 < len(curve["x"]) <= MAX_LINES + 1
    assert curve["x"] == sorted(curve["x"]) == curve["y"]
    assert curve["x"][-1] == count - 1
