"""The main job learns at a small size; the same job that cannot learn does not."""

from __future__ import annotations

import json

import pytest

from sb3_ext.training import quickstart
from sb3_ext.training.loading import load_player

make_model = quickstart.make_model


@pytest.fixture
def small(monkeypatch):
    """Makes the job small; with gamma 0 every move costs the same, so there is nothing to learn."""

    def prepare(gamma=0.97, batch_size=128, learning_starts=2000):
        def make(updates, seed):
            model = make_model(updates, seed)
            model.gamma, model.batch_size = gamma, batch_size
            model.learning_starts = learning_starts
            return model

        monkeypatch.setattr(quickstart, "make_model", make)

    return prepare


@pytest.mark.learning
def test_the_main_job_learns(small, tmp_path):
    """Recorded: trained 0.163 with seed 0, untrained 0.0003, the control 0.0006; random 0.045."""
    rho = {}
    for name, gamma in (("trained", 0.97), ("control", 0.0)):
        small(gamma)
        summary = quickstart.run(tmp_path / name, 1000, seed=0, games=200)
        rho[name] = summary["rho"]["trained"]["choose_first"]
        assert summary["curve"][0]["score"] < 0.05  # untrained
    random = summary["rho"]["random"]["choose_first"]
    assert rho["trained"] > 0.1 > 1.5 * random
    assert rho["control"] < 1.5 * random


def test_what_it_leaves(small, tmp_path, capsys):
    small(batch_size=16, learning_starts=256)
    out = tmp_path / "run"
    arguments = ["--updates", "4", "--games", "20", "--out", str(out), "--no-progress"]
    assert quickstart.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "trained" in printed
    assert "zeillinger_lex" in printed
    names = {"best", "best_model.zip", "curve.png", "game.txt", "host.zip", "rho.json"}
    assert {path.name for path in out.iterdir()} == names | {"summary.json"}
    summary = json.loads((out / "summary.json").read_text())
    assert summary["updates"] >= 4
    assert summary["versions"]["torch"]
    assert set(summary["rho"]["trained"]) == {"choose_first", "choose_last", "random"}
    assert load_player(out / "host.zip", "host").role == "host"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--updates", "0"], "updates must be a whole number of at least 1, got 0"),
        (["--games", "-1"], "games must be a whole number of at least 1, got -1"),
        (["--threads", "0"], "threads must be at least 1, got 0"),
        (["--out", "file"], "out must be a writable folder, got file"),
    ],
)
def test_bad_input_is_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert quickstart.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("quickstart: ")
    assert message in error
    assert error.count("\n") == 1
