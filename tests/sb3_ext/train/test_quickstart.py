"""The main job learns at a small size; the same job that cannot learn does not."""

from __future__ import annotations

import json

import pytest

import resgym
from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.train import quickstart
from sb3_ext.train.config_files import transitions_for
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


@pytest.mark.long
@pytest.mark.learning
def test_the_main_job_learns(small, tmp_path):
    """Recorded: trained 0.199 (seed 0), untrained 0.0006; a random host has 0.045.

    The control learns as long, but with gamma 0 every move costs it the same.
    """
    small()
    summary = quickstart.run(tmp_path / "run", 1000, seed=0, games=200)
    table = summary["table"]
    trained, random = (table[name]["choose_first"]["rho"] for name in ("trained", "random"))
    assert trained > 0.1 > 1.5 * random
    assert json.loads((tmp_path / "run" / "rho.json").read_text())[0]["score"] < random / 10
    small(gamma=0.0, n_steps=1)
    control = quickstart.make_model(1000, 0)
    control.learn(transitions_for(control, 1000))
    assert resgym.rho(player_of(control), "choose_first", games=100).rho < 1.5 * random


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
    assert "share" in json.loads((out / "rho.json").read_text())[0]
    names = {"best", "best_model.zip", ".lock", "curve.png", "game.txt", "host", "host.zip"}
    assert {path.name for path in out.iterdir()} == names | {"rho.json", "summary.json"}
    summary = json.loads((out / "summary.json").read_text())
    assert summary["updates"] == 4
    assert summary["versions"]["torch"]
    assert set(summary["table"]["trained"]) == {"choose_first", "choose_last", "random"}
    assert load_player(out / "host", "host").role == "host"
