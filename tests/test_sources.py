"""What docs/sources.md names exists: files, tests, commands, keys; and its counts add up."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import re
import shlex
import sys
from functools import cache
from pathlib import Path

import pytest

from resgym.cli import main as resgym_main
from sb3_ext.__main__ import COMMANDS as SB3_COMMANDS

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
SPANS = sorted(set(re.findall(r"`([^`\n]+)`", PAGE)))
PATHS = [
    span
    for span in SPANS
    if re.match(r"(resgym|sb3_ext|tests|configs|docs|examples|benchmarks)(/|$)", span)
    and not span.endswith("-v0")
]
COMMANDS = [span for span in SPANS if re.match(r"resgym [a-z-]+ |python -m ", span)]
KEYS = [
    span
    for span in SPANS
    if re.fullmatch(r"(roles\.<role>|training|evaluation|logging|checkpoint|compute)\.[\w.]+", span)
]
SECTIONS = PAGE.split("\n## ")[1:]


def rows(text: str) -> list[list[str]]:
    """The cells of a table's rows, without its head."""
    return [line[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]


@cache
def functions_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("path", PATHS)
def test_files_and_tests_exist(path):
    file, _, function = path.partition("::")
    assert (ROOT / file).exists()
    assert not function or function in functions_in(file)


@cache
def help_of(command: tuple[str, ...]) -> str:
    """What a command answers to ``--help``, here in this process."""
    if command[0] == "resgym":
        run, given = resgym_main, [*command[1:], "--help"]
    else:
        target, function, _ = SB3_COMMANDS[command[0]]
        run, given = getattr(importlib.import_module(target), function), [*command[1:], "--help"]
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        run(given)
    return text.getvalue()


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_and_their_options_exist(command, monkeypatch):
    words = shlex.split(command)
    if words[0] == "python":  # -m sb3_ext NAME or -m sb3_ext.NAME
        words = words[3:] if words[2] == "sb3_ext" else [words[2].split(".")[1], *words[3:]]
    monkeypatch.setattr(sys, "argv", words[:1])
    has_subcommands = words[0] == "resgym"
    text = help_of(tuple(words[: 2 if has_subcommands else 1]))
    assert "usage:" in text
    options = [word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    assert [option for option in options if not re.search(rf"{option}\b", text)] == []


def test_keys_exist():
    listed = (ROOT / "docs" / "two_player.md").read_text(encoding="utf-8")
    assert len(KEYS) > 20
    whole = [key for key in KEYS if f"| `{key}` |" not in listed]
    assert [key for key in whole if f"| `{key}." not in listed] == []


def test_linked_headings_exist():
    for page, heading in re.findall(r"\]\((\w+\.md)#([\w-]+)\)", PAGE):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        titles = [title.lower() for title in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)]
        anchors = [re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles]
        assert heading in anchors, f"{page}#{heading}"


def test_counts_are_those_of_the_tables():
    counts = []
    for section in SECTIONS:
        features = rows(section)
        assert all(len(row) == 4 for row in features), section[:40]
        out = sum(row[2].startswith("*not here*") for row in features)
        counts.append([len(features), len(features) - out, out])
    shown = [[int(cell) for cell in row[2:]] for row in rows(PAGE.split("\n## ")[0])]
    assert shown == counts
    assert f"{sum(row[0] for row in counts)} features" in PAGE
