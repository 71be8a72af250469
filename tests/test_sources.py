"""What docs/sources.md names exists: files, tests, commands, keys; and its counts add up."""

import ast
import re
import runpy
import shlex
from functools import cache
from pathlib import Path

import pytest

from resgym.trust import packaged
from sb3_ext.__main__ import COMMANDS as SB3_COMMANDS
from sb3_ext.two_player.job import TwoPlayer
from tests.resgym.commands import run

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
SPANS = sorted(set(re.findall(r"`([^`\n]+)`", PAGE)))
COMMANDS = [span for span in SPANS if re.match(r"resgym [a-z-]+ |python -m ", span)]
EXAMPLES = [span for span in SPANS if re.search(r" examples/\w+\.py", span)]


@cache
def functions_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_files_tests_and_keys_exist():
    for span in SPANS:
        file, _, function = span.partition("::")
        if re.match(r"(resgym|sb3_ext|tests|configs|docs|examples|benchmarks)/", span):
            assert span.endswith("-v0") or (ROOT / file).exists(), span
            assert not function or function in functions_in(file), span
    listed = dict(runpy.run_path(str(ROOT / "docs" / "keys.py"))["key_rows"](TwoPlayer.Config))
    keys = r"(roles\.<role>|training|evaluation|logging|checkpoint|compute)\.[\w.]+"
    found = [span for span in SPANS if re.fullmatch(keys, span)]
    assert len(found) > 20
    for key in found:  # or a section that has keys
        assert any(f"{each}.".startswith(f"{key}.") for each in listed), key


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_and_their_options_exist(command, capsys):
    words = shlex.split(command)
    if words[0] == "python":  # -m sb3_ext NAME or -m sb3_ext.NAME
        words = words[3:] if words[2] == "sb3_ext" else [words[2].split(".")[1], *words[3:]]
    if words[0] == "resgym":
        _, text, _ = run(capsys, words[1], "--help")
    else:
        _, text, _ = run(capsys, "--help", main=packaged(":".join(SB3_COMMANDS[words[0]][:2])))
    assert "usage:" in text
    options = [word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    assert [option for option in options if not re.search(rf"{option}\b", text)] == []


@pytest.mark.parametrize("command", EXAMPLES)
def test_examples_and_their_options_exist(command):
    _, file, options = re.split(r" (examples/\w+\.py)", command)
    text = (ROOT / file).read_text(encoding="utf-8")
    assert all(f'"{option}"' in text for option in re.findall(r"--[a-z-]+", options))
    assert Path(file).stem in (ROOT / "tests/test_examples.py").read_text(encoding="utf-8")


def test_counts_are_those_of_the_tables():
    def rows(text):
        return [line[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]

    head, *sections = PAGE.split("\n## ")
    counts = []
    for features in map(rows, sections):
        assert all(len(row) == 4 for row in features)
        out = sum(row[2].startswith("*not here*") for row in features)
        counts.append([len(features), len(features) - out, out])
    assert [[int(cell) for cell in row[2:]] for row in rows(head)] == counts
    assert f"{sum(row[0] for row in counts)} features" in PAGE
