"""Learning curves of run folders."""

from __future__ import annotations

import json
import math
import os

import pytest

from resgym.measure.plots import plot_curves
from sb3_ext.train import curves
from sb3_ext.train.curves import curves_of, main, read_curves

HISTORY = [
    {"updates": 0, "rho": {"random": 0.1, "choose_first": 0.02}},
    {"updates": 50, "rho": {"random": 0.2}, "share": {"choose_first": [0.5, 0.6]}},
    {"updates": 100, "rho": {"random": 0.3}, "interval_95": {"random": [0.25, 0.35]}},
]
EVALUATIONS = [
    {"step": 0, "values": {"host-agent": 0.1}},
    {"step": 10, "values": {"host-agent": 0.3, "host-random": 0.2}},
]
NONE = "run must be a folder with measurements in rho.json or evaluations.jsonl, got"


@pytest.fixture
def runs(tmp_path):
    """A run of each kind; the second was killed while it wrote."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "rho.json").write_text(json.dumps(HISTORY))
    (tmp_path / "two").mkdir()
    lines = "".join(json.dumps(each) + "\n" for each in EVALUATIONS)
    (tmp_path / "two" / "evaluations.jsonl").write_text(f'{lines}{{"step": 20, "val')
    return tmp_path


def test_both_kinds_of_runs_are_read(runs):
    first, second = read_curves(runs / "one")
    assert (first.label, first.x, first.y) == ("random", [0, 50, 100], [0.1, 0.2, 0.3])
    assert (second.label, second.x, second.y) == ("choose_first", [0], [0.02])
    assert all(map(math.isnan, first.band[0] + first.band[1]))
    assert (first.band[2], second.band) == ((0.25, 0.35), [])
    (band,) = plot_curves([first, second]).axes[0].collections
    assert band is not None
    first, second = read_curves(runs / "two")
    assert (first.label, first.x, first.y) == ("host-agent", [0, 10], [0.1, 0.3])
    assert second.label == "host-random"
    (share,) = read_curves(runs / "one", share=True)
    assert (share.label, share.x, share.y, share.band) == ("choose_first", [50], [0.5], [])


def test_the_command_draws_one_run_or_several(runs, monkeypatch, capsys):
    drawn = []
    monkeypatch.setattr(
        curves,
        "plot_curves",
        lambda lines, *rest, **more: (
            drawn.append((lines, more)) or plot_curves(lines, *rest, **more)
        ),
    )
    target, (one, two) = runs / "curve.png", (str(runs / "one"), str(runs / "two"))
    for given in ([one], [one, two], ["--share", one]):
        assert main([*given, "--out", str(target)]) == 0
    labels = [[curve.label for curve in lines] for lines, _ in drawn]
    assert labels[0] == ["random", "choose_first"]
    assert labels[1] == ["one: random", "one: choose_first", "two: host-agent", "two: host-random"]
    assert drawn[2][1]["levels"] == {"optimum": 1.0}
    assert target.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out == f"written to {target}\n" * 3
    assert main(["--share", two, "--out", str(target)]) == 2
    assert "run must be a folder with shares of an optimum in" in capsys.readouterr().err


def test_runs_of_one_name_are_told_apart(runs):
    for parent in ("a", "b"):
        (runs / parent).mkdir()
        os.rename(runs / ("one" if parent == "a" else "two"), runs / parent / "run")
    named = curves_of([runs / "a" / "run", runs / "b" / "run"])
    assert (named[0].label, named[-1].label) == ("a/run: random", "b/run: host-random")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, NONE),
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
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("curves: ")
    assert message in line
    assert not (tmp_path / "curve.png").exists()
