"""The command line: teaching help, the three commands, Ctrl-C."""

from __future__ import annotations

import json
from unittest.mock import Mock

import pytest

import sb3_ext.studies.attack.cli as cli
from resgym.files import check_seal
from sb3_ext.studies.attack.cli import main
from tests.sb3_ext.studies.attack.helpers import SMALL

LESS = [part for setting in SMALL for part in ("--set", setting)]
UNTRAINED = [*LESS, "--set", "responder.updates=0"]


def test_help_teaches(capsys):
    for arguments in (["--help"], ["run", "--help"], ["table", "--help"]):
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
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
    arguments = ["table", *UNTRAINED, "--budgets", "points5", "--agents", "--hosts", "random"]
    assert main(arguments) == 0
    first = capsys.readouterr().out
    assert "| random |" in first
    model = "runs/attack/small/host-random/seed-0"
    assert main([*arguments, "--model", f"mine={model}"]) == 0
    printed = capsys.readouterr()
    assert "is in runs/attack/results.json" in printed.err
    assert "| mine |" in printed.out
    assert main([*arguments, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_interrupt(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli, "exploit", Mock(side_effect=KeyboardInterrupt))
    assert main(["run", "zeillinger", *LESS, "--out", str(tmp_path)]) == 130
    assert "what is finished is kept" in capsys.readouterr().err
