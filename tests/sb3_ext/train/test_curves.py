"""Learning curves of run folders."""

from __future__ import annotations

import json
import math
import os

import pytest

from resgym.measure.plots import plot_curves
from sb3_ext.train import curves
from sb3_ext.train.curves import main, read_curves

HISTORY = [
    {"updates": 0, "rho": {"random": 0.1, "choose_first": 0.02}},
    {"updates": 50, "rho": {"random": 0.2}},
]
EVALUATIONS = [
    {"step": 0, "values": {"host-agent": 0.1}},
    {"step": 10, "values": {"host-agent": 0.3, "host-random": 0.2}},
]

NONE = "run must be a folder with measurements in rho.json or evaluations.jsonl, got"


@pytest.fixture
def runs(tmp_path):
    """A run of each kind."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "rho.json").write_text(json.dumps(HISTORY))
    (tmp_path / "two").mkdir()
    lines = "".join(json.dumps(each) + "\n" for each in EVALUATIONS)
    (tmp_path / "two" / "evaluations.jsonl").write_text(lines)
    return tmp_path


def test_both_kinds_of_runs_are_read(runs):
    first, second = read_curves(runs / "one")
    assert (first.label, first.x, first.y) == ("random", [0, 50], [0.1, 0.2])
    assert (second.label, second.x, second.y) == ("choose_first", [0], [0.02])
    first, second = read_curves(runs / "two")
    assert (first.label, first.x, first.y) == ("host-agent", [0, 10], [0.1, 0.3])
    assert second.label == "host-random"


def test_a_run_that_was_killed_while_it_wrote_is_read(runs):
    with (runs / "two" / "evaluations.jsonl").open("a") as file:
        file.write('{"step": 20, "val')
    assert read_curves(runs / "two")[0].x == [0, 10]


def test_shares_beside_the_optimum(runs, monkeypatch, capsys):
    share = {"choose_first": [0.5, 0.6]}
    history = [HISTORY[0], {**HISTORY[1], "share": share}]
    (runs / "one" / "rho.json").write_text(json.dumps(history))
    (curve,) = read_curves(runs / "one", share=True)
    assert (curve.label, curve.x, curve.y) == ("choose_first", [50], [0.5])
    levels = []
    monkeypatch.setattr(curves, "plot_curves", lambda *rest, **kw: levels.append(kw["levels"]))
    out = ["--share", "--out", str(runs / "curve.png")]
    assert main([str(runs / "one"), *out]) == 0
    assert levels == [{"optimum": 1.0}]
    assert main([str(runs / "two"), *out]) == 2
    assert "run must be a folder with shares of an optimum in" in capsys.readouterr().err


def test_the_command_draws_one_run_or_several(runs, monkeypatch, capsys):
    drawn = []
    monkeypatch.setattr(
        curves,
        "plot_curves",
        lambda lines, *rest, **kw: drawn.append(lines) or plot_curves(lines, *rest, **kw),
    )
    target = runs / "curve.png"
    assert main([str(runs / "one"), "--out", str(target)]) == 0
    assert main([str(runs / "one"), str(runs / "two"), "-o", str(target)]) == 0
    assert [curve.label for curve in drawn[0]] == ["random", "choose_first"]
    assert [curve.label for curve in drawn[1]] == [
        "one: random",
        "one: choose_first",
        "two: host-agent",
        "two: host-random",
    ]
    assert target.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out == f"written to {target}\n" * 2


def test_runs_of_one_name_are_told_apart(runs):
    for parent in ("a", "b"):
        (runs / parent).mkdir()
        os.rename(runs / ("one" if parent == "a" else "two"), runs / parent / "run")
    named = curves._all_curves([runs / "a" / "run", runs / "b" / "run"])
    assert named[0].label == "a/run: random"
    assert named[-1].label == "b/run: host-random"


def test_intervals_become_bands_where_a_run_kept_them(runs):
    entry = {"updates": 100, "rho": {"random": 0.3}, "interval_95": {"random": [0.25, 0.35]}}
    (runs / "one" / "rho.json").write_text(json.dumps([*HISTORY, entry]))
    first, second = read_curves(runs / "one")
    assert all(map(math.isnan, first.band[0] + first.band[1]))
    assert first.band[2] == (0.25, 0.35)
    assert second.band == []
    figure = plot_curves([first, second])
    (band,) = figure.axes[0].collections
    assert band.get_datalim(figure.axes[0].transData).ymax == pytest.approx(0.35)
    assert figure.axes[0].get_legend().get_title().get_text().startswith("bands: 95 %")


def test_the_mean_of_runs_has_the_band_of_all(runs, capsys):
    for name, factor in (("a", 1), ("b", 2), ("c", 6)):
        (runs / name).mkdir()
        places = [0, 50] if name == "c" else [0, 50, 70]
        history = [{"updates": x, "rho": {"random": factor * (x + 1), name: 1}} for x in places]
        (runs / name / "rho.json").write_text(json.dumps(history))
    (curve,) = curves._mean_curves([runs / name for name in "abc"])
    assert (curve.label, curve.x) == ("random", [0, 50])
    assert (curve.y, curve.band) == ([3, 153], [(1, 6), (51, 306)])
    target = runs / "mean.svg"
    assert main([*(str(runs / name) for name in "abc"), "--mean", "-o", str(target)]) == 0
    assert "written to" in capsys.readouterr().out
    assert main([str(runs / "a"), str(runs / "two"), "--mean", "-o", str(runs / "x.svg")]) == 2
    assert "no measurement of the same name" in capsys.readouterr().err
    assert not (runs / "x.svg").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, NONE),
        ("[]", NONE),
        ("[{]", NONE),
        ('[{"updates": 1}]', NONE),
        ('[{"updates": 1, "rho": 5}]', NONE),
        ('{"a": 1}', NONE),
        ('[{"updates": 1, "rho": {"random": NaN}}]', "must have a finite value"),
    ],
)
def test_bad_runs(content, message, tmp_path, capsys):
    if content is not None:
        (tmp_path / "rho.json").write_text(content)
    assert main([str(tmp_path), "--out", str(tmp_path / "curve.png")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("curves: ")
    assert message in error
    assert not (tmp_path / "curve.png").exists()
