"""Learning curves of run folders."""

import json
import math

import pytest

from resgym.pictures.plots import plot_curves
from sb3_ext.train import curves
from sb3_ext.train.curves import main, read_curves

HISTORY = [
    {"updates": 0, "rho": {"random": 0.1, "choose_first": 0.02}},
    {"updates": 50, "rho": {"random": 0.2}, "score": 0.2},
    {"updates": 100, "rho": {"random": 0.3}, "interval_95": {"random": [0.25, 0.35]}},
]
EVALUATIONS = """{"step": 0, "values": {"host-agent": 0.1}}
{"step": 10, "values": {"host-agent": 0.3, "host-random": 0.2}}
{"step": 20, "val"""


@pytest.fixture
def runs(tmp_path):
    """A run of each kind; the second was killed while it wrote."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "rho.json").write_text(json.dumps(HISTORY))
    (tmp_path / "two" / "evaluations.jsonl").write_text(EVALUATIONS)
    return tmp_path


def test_both_kinds_of_runs_are_read(runs):
    first, second = read_curves(runs / "one")
    assert (first.label, first.x, first.y) == ("random", [0, 50, 100], [0.1, 0.2, 0.3])
    assert (second.label, second.x, second.y) == ("choose_first", [0], [0.02])
    assert all(map(math.isnan, first.band[0] + first.band[1]))
    assert (first.band[2], second.band) == ((0.25, 0.35), [])
    assert len(plot_curves([first, second]).axes[0].collections) == 1  # the band
    first, second = read_curves(runs / "two")
    assert (first.label, first.x, first.y) == ("host-agent", [0, 10], [0.1, 0.3])
    assert second.label == "host-random"
    long = {"step": 0, "values": {"x" * 10**5: 0.1}}
    (runs / "two" / "evaluations.jsonl").write_text(json.dumps(long))
    assert len(read_curves(runs / "two")[0].label) <= 500


def test_the_command_draws_one_run_or_several(runs, monkeypatch, capsys):
    drawn = []

    def draw(lines, *more, **options):
        drawn.append([curve.label for curve in lines])
        return plot_curves(lines, *more, **options)

    monkeypatch.setattr(curves, "plot_curves", draw)
    monkeypatch.chdir(runs)
    for given in (["one"], ["one", "two"]):
        assert main([*given, "--out", "curve.png"]) == 0
    assert drawn == [
        ["random", "choose_first"],
        ["one: random", "one: choose_first", "two: host-agent", "two: host-random"],
    ]
    assert (runs / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out == "written to curve.png\n" * 2
