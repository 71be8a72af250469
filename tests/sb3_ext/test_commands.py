"""``python -m sb3_ext``: each entry of its table answers, and refuses bad words in one line."""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

import sb3_ext
from resgym.trust import packaged
from sb3_ext.__main__ import COMMANDS, main
from tests.resgym.commands import run
from tests.sb3_ext.helpers import player_model


@pytest.mark.parametrize("name", COMMANDS)
def test_every_entry_is_a_command(name, capsys):
    code, text, _ = run(capsys, "--help", main=packaged(COMMANDS[name][0]))
    assert (code, text[:6]) == (0, "usage:")
    assert name != "enjoy" or "seed of the games (default 0)" in text


def test_doors_of_their_own_start_what_the_table_names():
    package = Path(sb3_ext.__file__).parent
    found = 0
    for path in (*package.glob("*.py"), *package.glob("*/__main__.py")):
        started = r'start\("(\w+)", "([\w.:]+)"\)'
        for name, function in re.findall(started, path.read_text(encoding="utf-8")):
            assert COMMANDS[name][0] == function
            found += 1
    assert found == 5  # train, enjoy, two_player, teach, attack


def test_without_a_name_all_are_listed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sb3_ext"])
    assert main() == 0
    listed = capsys.readouterr().out.splitlines()[2:]
    assert [line.split()[0] for line in listed] == list(COMMANDS)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["curves", "run", "--out", "curve.bmp"], "curves: out must end in one of"),
        (["curve"], "sb3_ext: command: got 'curve'; expected one of train"),
    ],
)
def test_a_command_runs_with_its_arguments_and_an_unknown_one_is_a_line(
    words, line, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["sb3_ext", *words])
    assert main() == 2
    assert capsys.readouterr().err.startswith(line)


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
    player_model("host").save(path)
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


@pytest.mark.parametrize(("command", "message"), CASES)
def test_one_line_names_what_is_wrong_and_nothing_is_left(command, message, folder, capsys):
    before = sorted(folder.rglob("*"))
    name, *arguments = command
    code, printed, errors = run(capsys, *arguments, main=packaged(COMMANDS[name][0]))
    assert code == 2
    (line,) = errors.splitlines()
    assert line not in printed
    assert re.match(rf"(python -m sb3_ext )?{name}: ", line)
    assert message in line
    left = [path for path in folder.rglob("*") if path.name != ".lock" and path not in before]
    assert left == []
