"""The doors of the commands: versions, tables, and what a shell's tab key shows."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import resgym
from sb3_ext.train.train import train
from tests.resgym.commands import run

ROOT = Path(__file__).resolve().parents[1]


def test_the_version_is_printed(capsys):
    assert run(capsys, "--version") == (0, f"resgym {resgym.__version__}\n", "")
    command = [sys.executable, "-m", "resgym", "--version"]
    said = subprocess.check_output(command, cwd=ROOT, text=True)
    assert said == f"resgym {resgym.__version__}\n"


@pytest.mark.parametrize("name", ["ddqn/axes4", "ddqn/axes4.yml"])
def test_conf_file_takes_a_name_of_the_package(name, capsys):
    given = ["--algo", "ddqn", "--env", "resgym/HironakaHost-v0", "--dry-run"]
    given += ["--verbose", "0", "-conf"]
    assert train([*given, name]) == 0
    file = yaml.safe_load((ROOT / "configs/ddqn/axes4.yml").read_text())
    found = yaml.safe_load(capsys.readouterr().out)["hyperparameters"]
    assert found["env_kwargs"] == file["resgym/HironakaHost-v0"]["env_kwargs"]
    assert train([*given, "nothing"]) == 2
    assert "conf-file: there is no file 'nothing'" in capsys.readouterr().err
