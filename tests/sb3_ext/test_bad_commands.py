"""What a command cannot do is refused in one line, by name, and leaves nothing behind."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from resgym.trust import packaged
from sb3_ext.__main__ import COMMANDS
from sb3_ext.config.sections import shipped_configs
from tests.resgym.commands import run
from tests.sb3_ext.train.helpers import make_model


def table(text):
    """The commands of a table, each with a part of the line that refuses it."""
    beginning = ""
    for line in text.splitlines():
        if line.startswith(" "):
            words, message = line.split(" | ")
            yield shlex.split(beginning + words), message
        else:
            beginning = line


CASES = [*table(Path(__file__).with_name("bad_commands.txt").read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "host.zip"
    make_model("host").save(path)
    return path


@pytest.fixture
def folder(model, tmp_path, monkeypatch):
    """Where the commands run: a model, a module that ends the program, and runs without curves."""
    shutil.copy(model, tmp_path)
    (tmp_path / "ends_it.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "empty").mkdir()
    for name, rho in (("number", 5), ("nan", {"random": float("nan")}), ("broken", None)):
        (tmp_path / name).mkdir()
        history = json.dumps([{"updates": 1, "rho": rho}]) if rho else "[{]"
        (tmp_path / name / "rho.json").write_text(history)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def refusal(command, capsys):
    """The one line on stderr of a command that must end with code 2."""
    name, *arguments = command
    module, function, _ = COMMANDS[name]
    code, printed, errors = run(capsys, *arguments, main=packaged(f"{module}:{function}"))
    assert code == 2
    (line,) = errors.splitlines()
    assert line not in printed
    return line


@pytest.mark.parametrize(("command", "message"), CASES)
def test_one_line_names_what_is_wrong_and_nothing_is_left(command, message, folder, capsys):
    before = sorted(folder.rglob("*"))
    line = refusal(command, capsys)
    assert re.match(rf"(python -m sb3_ext )?{command[0]}: ", line)
    assert message in line
    left = [path for path in folder.rglob("*") if path.name != ".lock" and path not in before]
    assert left == []


def test_an_algorithm_without_a_file_is_told_which_have_one(folder, capsys):
    line = refusal(["train", "--algo", "sb3_contrib:TRPO", "--env", "CartPole-v1"], capsys)
    assert {name for name in shipped_configs() if "/" not in name} <= {*re.findall(r"\w+", line)}
