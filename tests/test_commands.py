"""The doors of the commands: versions, tables, and what a shell's tab key shows."""

import subprocess
import sys
from pathlib import Path

import resgym
from sb3_ext.train.train import train
from tests.resgym.commands import run

ROOT = Path(__file__).resolve().parents[1]


def test_the_version_is_printed(capsys):
    assert run(capsys, "--version") == (0, f"resgym {resgym.__version__}\n", "")
    command = [sys.executable, "-m", "resgym", "--version"]
    said = subprocess.check_output(command, cwd=ROOT, text=True)
    assert said == f"resgym {resgym.__version__}\n"


def test_conf_file_takes_a_name_of_the_package(capsys):
    given = ["--algo", "ddqn", "--env", "resgym/HironakaHost-v0", "--dry-run", "--verbose", "0"]
    assert train([*given, "-conf", "ddqn/axes4"]) == 0
    assert "dimension: 4" in capsys.readouterr().out
