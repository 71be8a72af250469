"""Model cards: what is measured is what others load, in the form that the Hub reads."""

import json
import re
from types import SimpleNamespace

import pytest
import torch
from huggingface_hub import ModelCard

import resgym
from resgym import cli
from resgym.benchmark import evaluate, load, tasks
from sb3_ext.checkpoints.models import MODEL
from sb3_ext.train import card
from sb3_ext.train.card import CONFIG
from sb3_ext.train.loading import load_player
from tests.sb3_ext.helpers import player_model


@pytest.fixture(autouse=True)
def few_starts(monkeypatch):
    monkeypatch.setattr(tasks, "load", lambda part: load(part).select(torch.arange(2)))
    monkeypatch.setattr(tasks, "MAX_MOVES", 10)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The host and the agent as .zip."""
    folder = tmp_path_factory.mktemp("saved")
    for seat in ("host", "agent"):
        player_model(seat).save(folder / f"{seat}.zip")
    return folder


def answers(path):
    starts = resgym.measure.rho.rho_starts(resgym.GameSpec(max_num_points=5), 200)
    return load_player(path, "host").act(starts, None, None)


def test_the_card_shows_what_its_folder_plays(saved, tmp_path, capsys):
    out = tmp_path / "card"
    given = [str(saved / "host.zip"), "--trust", "--license", "cc0-1.0"]
    assert card.main([*given, "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out / 'README.md'}\n"
    assert sorted(file.name for file in out.iterdir()) == ["README.md", CONFIG, MODEL]
    assert torch.equal(answers(out), answers(saved / "host.zip"))
    assert torch.equal(answers(out / MODEL), answers(out))

    read = ModelCard.load(out / "README.md")
    assert (read.data.library_name, read.data.license) == ("resgym", "cc0-1.0")
    assert re.search(rf"\| worst-5 \| .* \| {evaluate(str(out), 'worst-5')} \|", read.text)
    assert "| task | player | result |" in read.text  # it knows five points
    assert json.loads((out / CONFIG).read_text())["role"] == "host"
    assert card.main([str(out), "--out", str(tmp_path / "again")]) == 0
    assert torch.equal(answers(tmp_path / "again"), answers(out))


def test_an_agent_has_a_card_without_figures_and_perhaps_half_of_the_size(saved, tmp_path):
    for half in (False, True):
        assert card.write_card(saved / "agent.zip", tmp_path / str(half), "mine", half=half) == []
    sizes = [(tmp_path / str(half) / MODEL).stat().st_size for half in (False, True)]
    assert sizes[1] < 0.8 * sizes[0]
    read = ModelCard.load(tmp_path / "True" / "README.md")
    assert "None: no task of the scoreboard has positions of this size." in read.text
    assert load_player(tmp_path / "True", "agent").role == "agent"


def test_a_host_for_every_size_has_figures_of_every_task_of_hosts(tmp_path, monkeypatch):
    monkeypatch.setattr(card, "evaluate", lambda player, task, **_: task)
    monkeypatch.setattr(card, "Scoreboard", lambda rows: SimpleNamespace(table_rows=lambda: rows))
    monkeypatch.setattr(card, "markdown_table", ", ".join)
    settings = {"extractor": "any_size", "net_arch": [8]}
    player_model("host", policy_kwargs=settings).save(tmp_path / "host.zip")
    found = card.write_card(tmp_path / "host.zip", tmp_path / "out", "mine")
    assert {"worst-5", "worst-20", "axes4"} < {*found}
    assert "all numbers of axes and points" in (tmp_path / "out" / "README.md").read_text()


def test_resgym_finds_the_commands_of_installed_packages(saved, tmp_path, monkeypatch, capsys):
    entry = SimpleNamespace(name="card", load=lambda: card.main)
    found = {"resgym.commands": [entry]}
    monkeypatch.setattr(
        cli,
        "entry_points",
        lambda group, name="card": found.get(group, []) if name == "card" else [],
    )
    given = [str(saved / "agent.zip"), "--trust", "--out", str(tmp_path / "card")]
    assert cli.main(["card", *given]) == 0
    assert (tmp_path / "card" / "README.md").is_file()
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert "see resgym card --help" in capsys.readouterr().out

    def not_installed():
        raise ImportError("No module named 'safetensors'")

    entry.load = not_installed
    assert cli.main(["card", "x", "--out", "y"]) == 2
    assert capsys.readouterr().err == "resgym card: No module named 'safetensors'\n"
