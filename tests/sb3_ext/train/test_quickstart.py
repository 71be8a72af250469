"""The main job at a small size."""

import json
import re

from sb3_ext.train import quickstart
from sb3_ext.train.config_files import transitions_for
from sb3_ext.train.loading import load_player
from sb3_ext.train.train import main as train
from tests.sb3_ext.helpers import recorded, start_quickly


def test_what_it_leaves(monkeypatch, tmp_path, capsys):
    start_quickly(monkeypatch)
    out = tmp_path / "run"
    arguments = ["--updates", "4", "--games", "20", "--out", str(out), "--no-progress"]
    assert quickstart.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "trained" in printed
    assert "zeillinger_lex" in printed
    summary = json.loads((out / "summary.json").read_text())
    for agent in ("choose_first", "choose_last"):
        assert 0 < summary["table"]["zeillinger"][agent]["share"][0] < 1
    names = {"best", "best_model.zip", ".lock", "curve.png", "host", "host.zip"}
    assert {path.name for path in out.iterdir()} == names | {"rho.json", "summary.json"}
    assert summary["updates"] == 4
    assert summary["versions"]["torch"]
    assert set(summary["table"]["trained"]) == {"choose_first", "choose_last", "random"}
    assert load_player(out / "host", "host").role == "host"


def test_win_prints_the_exact_worst_case_of_its_preset(monkeypatch, tmp_path, capsys):
    out = tmp_path / "run"
    known = recorded("zeillinger", "worst-20")  # an untrained host takes half a minute
    monkeypatch.setattr(quickstart, "evaluate", lambda *_, **__: known)
    arguments = ["--updates", "1", "--games", "2", "--out", str(out), "--no-progress"]
    assert train(["win", *arguments]) == 0
    printed = capsys.readouterr().out
    assert f"{known.details['cut']:.0f} of 481 starts over 200 moves" in printed
    assert re.search(r"^worst-20 +played +0\.98", printed, flags=re.MULTILINE)
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["updates"], summary["table"]["strength"][0]) == (1, known.value)
    assert load_player(out / "host", "host").role == "host"


def test_the_preset_says_how_many_updates_it_makes():
    win = quickstart.WIN
    model = quickstart.make_model(win.updates, 0, preset=win)
    assert win.section()["n_timesteps"] == transitions_for(model, win.updates)
