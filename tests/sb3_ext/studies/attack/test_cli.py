"""The command line: teaching help, one-line errors, Ctrl-C."""

from __future__ import annotations

import json

import pytest

import sb3_ext.studies.attack.cli as cli
from sb3_ext.studies.attack.cli import main
from sb3_ext.studies.json_files import check_seal
from tests.sb3_ext.studies.attack.helpers import SMALL

LESS = [part for setting in SMALL for part in ("--set", setting)]
UNTRAINED = [*LESS, "--set", "responder.updates=0"]


def test_help_teaches(capsys):
    for arguments in (["--help"], ["run", "--help"], ["table", "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
    text = capsys.readouterr().out
    for words in ("worst rho", "bound", "run zeillinger", "exact zeillinger", "points5"):
        assert words in text


def test_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "zeillinger", *LESS, "--seeds", "3"]) == 0
    printed = capsys.readouterr()
    assert "host zeillinger under attack, small: 100 games each" in printed.out
    assert "trained, seed 3" in printed.out
    assert "proves no more" in printed.out
    assert "seed 3: update 2 of 4" in printed.err
    saved = json.loads((tmp_path / "runs/attack/small/host-zeillinger/result.json").read_text())
    assert main(["run", "zeillinger", *LESS, "--seeds", "3", "--json", "--no-progress"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == check_seal(saved)
    assert printed.err == ""


def test_exact(capsys):
    assert main(["exact", "zeillinger", *LESS, "--no-progress"]) == 0
    assert "zeillinger: exact 0." in capsys.readouterr().out
    assert main(["exact", "zeillinger", *LESS, "--no-progress", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["starts"] == 10


def test_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["table", *UNTRAINED, "--budgets", "points5", "--agents", "--hosts", "zeillinger"]
    assert main(arguments) == 0
    first = capsys.readouterr().out
    assert "| zeillinger |" in first
    model = "runs/attack/small/host-zeillinger/seed-0"
    page = tmp_path / "page.md"
    page.write_text("<!-- attack tables: begin -->\n<!-- attack tables: end -->\n")
    assert main([*arguments, "--model", f"mine={model}", "--page", "page.md"]) == 0
    printed = capsys.readouterr()
    assert "is in runs/attack/results.json" in printed.err
    assert "| mine |" in printed.out
    assert printed.out.strip() in page.read_text()
    assert main([*arguments, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "zeilinger"], "player: "),
        (["run", "random"], "role must be given"),
        (["run", "zeillinger", "--budget", "nothing"], "budget: there is no file"),
        (["run", "zeillinger", "--set", "game.sise=3"], "unknown key of game 'sise'"),
        (["run", "zeillinger", "--seeds", "-1"], "responder.seeds[0] must be at least 0, got -1"),
        (["run", "zeillinger", "--threads", "0"], "threads must be at least 1"),
        (["exact", "random", "--role", "host"], "host must be deterministic"),
        (["table", "--hosts", "nobody"], "player: "),
    ],
)
def test_bad_input(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("attack: ")
    assert message in line
    assert not list(tmp_path.iterdir())


def test_bad_options(capsys):
    for arguments in ([], ["rum"], ["run"], ["run", "zeillinger", "--seeds", "a"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_interrupt(tmp_path, monkeypatch, capsys):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "exploit", stop)
    assert main(["run", "zeillinger", *LESS, "--out", str(tmp_path)]) == 130
    assert "what is finished is kept" in capsys.readouterr().err
