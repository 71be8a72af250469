"""The main job learns at a small size; the same job that cannot learn does not."""

from __future__ import annotations

import json

import pytest

from sb3_ext.train import quickstart
from sb3_ext.train.loading import load_player

make_model = quickstart.make_model


@pytest.fixture
def small(monkeypatch):
    """Makes the job small."""

    def prepare(gamma=0.99, batch_size=128, learning_starts=2000, n_steps=3):
        def make(updates, seed):
            model = make_model(updates, seed, n_steps=n_steps)
            model.gamma, model.batch_size = gamma, batch_size
            model.learning_starts = learning_starts
            return model

        monkeypatch.setattr(quickstart, "make_model", make)

    return prepare


def test_what_it_leaves(small, tmp_path, capsys):
    small(batch_size=16, learning_starts=256)
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
    summary = json.loads((out / "summary.json").read_text())
    assert summary["updates"] == 4
    assert summary["versions"]["torch"]
    assert set(summary["table"]["trained"]) == {"choose_first", "choose_last", "random"}
    assert load_player(out / "host", "host").role == "host"
