"""Tables of rho and learning curves as plots, and the files they go to."""

import math
import os
from pathlib import Path

import pytest
from matplotlib import pyplot

from resgym.cli import main
from resgym.files import write_file
from resgym.measure.rho import CrossPlay, RhoResult
from resgym.pictures.plots import Curve, plot_curves, plot_rho_table


def result(value):
    return RhoResult(value, 10, 10, 1.0, 0, 0, [], (0.0, 1.0))


FIRST = {"a": result(0.1), "b": result(0.25)}
SECOND = {"a": result(0.0), "b": result(0.05)}
TABLE = CrossPlay(["first", "second"], ["a", "b"], {"first": FIRST, "second": SECOND})


def test_a_table_shows_every_number_at_its_place(tmp_path):
    figure = plot_rho_table(TABLE)
    axes = figure.axes[0]
    cells = {(t.get_position()[1], t.get_position()[0]): t.get_text() for t in axes.texts}
    assert cells == {(0, 0): "0.100", (0, 1): "0.250", (1, 0): "0.000", (1, 1): "0.050"}
    assert [label.get_text() for label in axes.get_yticklabels()] == TABLE.hosts
    assert [label.get_text() for label in axes.get_xticklabels()] == TABLE.agents
    # Dark cells have light numbers.
    colours = {t.get_text(): t.get_color() for t in axes.texts}
    assert colours["0.250"] == "white" != colours["0.050"]
    path = tmp_path / "table.png"
    assert main(["cross-play", *["--hosts", "random", "--agents", "random", "--games", "20"],
                 "--plot", str(path)]) == 0  # fmt: skip
    assert path.read_bytes().startswith(b"\x89PNG")
    assert not pyplot.get_fignums()


def test_curves_and_levels_are_drawn():
    curves = [Curve("one", [0, 10, 20], [0.1, math.nan, 0.3]), Curve("two", [5], [0.2])]
    figure = plot_curves(curves, levels={"zeillinger": 0.08}, ylabel="rho", title="t")
    axes = figure.axes[0]
    one, two, level = axes.lines
    assert list(one.get_xdata()) == [0, 10, 20]
    assert one.get_ydata()[2] == 0.3
    # A single measurement can be seen only as a marker.
    assert two.get_marker() not in ("", "None")
    assert set(level.get_ydata()) == {0.08}
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown == ["one", "two", "zeillinger 0.080"]
    assert axes.get_ylim()[0] == 0
    assert not pyplot.get_fignums()


def test_a_plot_without_matplotlib_is_refused_before_the_games(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("resgym.measure.rho.rho", lambda *_, **__: pytest.fail("played"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["cross-play", "--plot", str(tmp_path / "table.png")]) == 2
    assert capsys.readouterr().err == (
        "resgym cross-play: --plot needs matplotlib, which is not installed: resgym[plots]\n"
    )


@pytest.mark.parametrize("when", ["fsync", "replace"])
def test_a_file_is_written_as_a_whole_or_not_at_all(tmp_path, monkeypatch, when):
    path = tmp_path / "a.txt"
    write_file(path, "old")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(*((os, "fsync", stop) if when == "fsync" else (Path, "replace", stop)))
    with pytest.raises(KeyboardInterrupt):
        write_file(path, "new" * 10_000)
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]
    write_file(path, "new")
    assert path.read_text() == "new"
