"""All checkpoints of a run measured again by one command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resgym.measure.rho import rho
from sb3_ext.studies.attack.exact import exact_worst_case
from sb3_ext.studies.attack.settings import read_budget
from sb3_ext.studies.retest import main
from sb3_ext.training.loading import load_player
from sb3_ext.two_player import cli as two_player

SETTINGS = [
    *("game.max_num_points=4", "game.max_value=4", "game.max_moves=15", "test.games=30"),
    *("scripted.agents=[choose_last]", "scripted.hosts=[zeillinger]", "exact.starts=5"),
]
SET = [f"--set={setting}" for setting in SETTINGS]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("retest") / "run"
    settings = ["game.max_num_points=4", "training.steps=4", "logging.sample_games=2"]
    given = ["--config", "small", "--smoke", "--out", str(folder), "--no-progress"]
    assert two_player.main([*given, *(f"--set={each}" for each in settings)]) == 0
    return folder


def test_every_checkpoint_is_measured(run, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out, plot = tmp_path / "retest.json", tmp_path / "retest.png"
    assert main([str(run), *SET, "--out", str(out), "--plot", str(plot), "--no-progress"]) == 0
    shown = capsys.readouterr().out
    entries = json.loads(out.read_text())["checkpoints"]
    numbered = sorted((run / "checkpoints").glob("checkpoint-*"))
    assert len(numbered) == 2
    expected = [(path.name, role) for path in numbered for role in ("host", "agent")]
    found = [(entry["checkpoint"], entry["role"]) for entry in entries]
    assert found[:4] == expected
    assert set(found[4:]) <= {("host", "host"), ("agent", "agent")}  # the best versions
    assert [entry["step"] for entry in entries[:4]] == [2, 2, 4, 4]
    assert plot.read_bytes().startswith(b"\x89PNG")

    budget = read_budget("points5", SETTINGS)
    about = {"games": 30, "seed": budget.test.seed, **budget.game.model_dump()}
    for entry, path in zip(entries[:2], [numbered[0]] * 2, strict=True):
        player = load_player(path, entry["role"])
        host = entry["role"] == "host"
        alone = rho(*((player, "choose_last") if host else ("zeillinger", player)), **about)
        assert entry["rho"] == {"choose_last" if host else "zeillinger": alone.rho}
        assert entry["worst_length"] == (alone.longest if host else alone.shortest)
        assert entry["exact"]["lowest"] == exact_worst_case(player, budget).lowest.to_dict()
        assert f"{alone.rho:.4f}" in shown


def test_one_seat_and_no_search(run, capsys):
    given = [str(run), *SET, "--set=exact=null", "--role", "agent", "--json", "--no-progress"]
    assert main(given) == 0
    entries = json.loads(capsys.readouterr().out)
    assert {entry["role"] for entry in entries} == {"agent"}
    assert {entry["exact"] for entry in entries} == {None}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{empty}"], "there is no checkpoint in"),
        (["{run}", "--budget", "points6"], "budget: there is no file 'points6'"),
        (["{run}", "--plot", "x.txt"], "plot must end in one of .png, .svg, .pdf"),
        (["{run}", "--out", "{empty}/none/x.json"], "out must be in a folder that exists"),
        (["{run}", "--set=game.dimension=4"], "games of dimension 3, got dimension 4"),
    ],
)
def test_what_is_refused(run, tmp_path, capsys, arguments, words):
    given = [each.format(empty=tmp_path, run=run) for each in arguments]
    assert main([*given, "--no-progress"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_the_trainer_writes_its_games_down(run):
    """Two games of the host against the agent at every evaluation, from the same starts."""
    files = sorted((run / "games").glob("*.json"))
    assert [file.stem for file in files] == ["000000002", "000000004"]
    games = [json.loads(file.read_text()) for file in files]
    assert [len(each) for each in games] == [2, 2]
    assert [game["positions"][0] for game in games[0]] == [
        game["positions"][0] for game in games[1]
    ]
    assert (run / "games/000000004.txt").read_text().startswith("after 4 steps\n")
