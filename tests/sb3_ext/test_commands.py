"""``python -m sb3_ext``: one table of commands, of which each entry is a command that answers."""

import ast
import sys
from pathlib import Path

import pytest

import sb3_ext
from resgym.trust import packaged
from sb3_ext.__main__ import COMMANDS, main
from tests.resgym.commands import run


@pytest.mark.parametrize("name", COMMANDS)
def test_every_entry_is_a_command(name, capsys):
    module, function, _ = COMMANDS[name]
    code, text, _ = run(capsys, "--help", main=packaged(f"{module}:{function}"))
    assert (code, text[:6]) == (0, "usage:")


def test_doors_of_their_own_start_what_the_table_names():
    package, found = Path(sb3_ext.__file__).parent, 0
    for path in (*package.glob("*.py"), *package.glob("*/__main__.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "start":
                arguments = [each for each in node.args if isinstance(each, ast.Constant)]
                if arguments:
                    name, module, *function = (each.value for each in arguments)
                    assert COMMANDS[name][:2] == (module, *(function or ["main"]))
                    found += 1
    assert found == 5  # train, enjoy, two_player, teach, attack


def test_without_a_name_all_are_listed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sb3_ext"])
    assert main() == 0
    listed = capsys.readouterr().out.splitlines()[2:]
    assert [line.split()[0] for line in listed] == list(COMMANDS)


def test_a_command_runs_with_its_arguments_and_an_unknown_one_is_a_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sb3_ext", "curves", "run", "--out", "curve.bmp"])
    assert main() == 2
    assert capsys.readouterr().err.startswith("curves: out must end in one of")
    monkeypatch.setattr(sys, "argv", ["sb3_ext", "curve"])
    assert main() == 2
    assert capsys.readouterr().err.startswith(
        "sb3_ext: command: got 'curve'; expected one of train"
    )
