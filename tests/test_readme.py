"""What the README shows is run, and its tables hold what exists."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import resgym
from resgym.cli import main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


COMMANDS = [
    shlex.split(line.split("#")[0])
    for block in blocks("sh")
    for line in block.splitlines()
    if line.startswith("resgym ")
]


@pytest.mark.parametrize("block", blocks("python"))
def test_python_examples_run(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng():
        exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_run(command, capsys, tmp_path, monkeypatch):
    # The same commands on less work: of a repeated option the last one counts.
    less = {
        "rho": ["--games", "20"],
        "cross-play": ["--games", "20"],
        "check": ["--steps", "5"],
        "bench": ["--batch-sizes", "2", "--repeats", "1", "--seconds", "0.01"],
    }
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("q\n"))
    assert main([*command[1:], *less.get(command[1], [])]) == 0
    assert capsys.readouterr().out.strip()


def test_there_are_examples():
    assert blocks("python")
    assert {command[1] for command in COMMANDS} >= {"bench", "check", "cross-play", "rho"}


def test_player_tables_name_every_player():
    # In a process of its own: other tests add players to the registry of this one.
    code = "from resgym.players import *; print(*host_names(), '|', *agent_names())"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    host_names, agent_names = (half.split() for half in names.stdout.split("|"))
    text = section("Players and their measure")
    hosts, agents = text.split("| agent | plays |")
    rows = [line.split("|")[1] for line in hosts.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(host_names)
    rows = [line.split("|")[1] for line in agents.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(agent_names)


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, flags=re.MULTILINE))
    assert {"train", "test", "check", "bench"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_named_functions_exist():
    for name in set(re.findall(r"`resgym\.(\w+)`", README)):
        assert hasattr(resgym, name), name
