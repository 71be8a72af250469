"""The main job at a small size."""

import json

from sb3_ext.train import quickstart
from sb3_ext.train.loading import load_player


def test_what_it_leaves(monkeypatch, tmp_path, capsys):
    make_model = quickstart.make_model

    def small(updates, seed):
        model = make_model(updates, seed)
        model.batch_size, model.learning_starts = 16, 256
        return model

    monkeypatch.setattr(quickstart, "make_model", small)
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
