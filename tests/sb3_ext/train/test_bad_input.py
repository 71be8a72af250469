"""What the commands of the studies refuse: one line, exit code 2, and nothing is written."""

from __future__ import annotations

import pytest

from sb3_ext.attack import attack
from sb3_ext.train import curves, quickstart
from sb3_ext.train.play import enjoy, record_video
from sb3_ext.train.train import main as train
from sb3_ext.two_player.job import main as two_player


@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        (attack, "zeilinger", "player must be one of"),
        (attack, "random", "role: got none; expected host or agent"),
        (attack, "zeillinger --budget nothing", "budget: there is no file"),
        (attack, "zeillinger --set game.sise=3", "unknown key of game 'sise'"),
        (attack, "zeillinger --set seeds=[-1]", "seeds[0] must be at least 0, got -1"),
        (attack, "zeillinger --threads 0", "threads must be between 1 and 1024"),
        (attack, "random --role host --parts exact", "expected a deterministic player"),
        (curves, "run --out curve.bmp", "out must end in one of .png, .svg, .pdf, got 'curve.bmp'"),
        (quickstart, "--updates 0", "updates must be a whole number of at least 1, got 0"),
        (quickstart, "--games -1", "games must be a whole number of at least 1, got -1"),
        (quickstart, "--threads 0", "threads must be between 1 and 1024, got 0"),
        (quickstart, f"--out {__file__}", f"out: must be a folder, {__file__} is a file"),
    ],
)
def test_bad_input(module, arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert module.main(arguments.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{module.__name__.split('.')[-1]}: ")
    assert message in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("main", "arguments"),
    [
        *((attack.main, given) for given in ("", "zeillinger --parts all")),
        *((main, "--bogus") for main in (curves.main, two_player)),
        *((main, "-n many") for main in (train, enjoy, record_video)),
        *((main, "--out=") for main in (quickstart.main, two_player)),
        (train, "--resume="),
    ],
)
def test_bad_options(main, arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(arguments.split())
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list(tmp_path.iterdir())
