"""The README and the pages of commands and players run as shown; tables name what exists."""

import collections
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import fmean

import pytest
import torch

import resgym
from resgym.cli import main
from resgym.scoreboard import read_rows

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PLAYERS, COMMANDS_PAGE = (
    (ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("players.md", "commands.md")
)
PAGES = "\n".join((README, PLAYERS, COMMANDS_PAGE))


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES, flags=re.MULTILINE | re.DOTALL)


LINES = [line.split("#")[0].strip() for block in blocks("sh") for line in block.splitlines()]
COMMANDS = [shlex.split(line) for line in LINES if line.startswith("resgym ")]
MODULES = [line for line in LINES if line.startswith("python -m ")]


@pytest.mark.parametrize("seed", [None, *(pytest.param(k, marks=pytest.mark.long) for k in (0, 1))])
def test_the_example_prints_what_is_shown(seed, tmp_path, monkeypatch, capsys):
    """On a seed as it stands on the page, else shorter."""
    ((source, shown),) = re.findall(
        r"^```python\n(.*?)^```\n+```text\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    changes = {"seed=0": f"seed={seed}"}
    if seed is None:
        changes = {"256_000": "11_000", "games=2_000": "games=100"}
    for old, new in changes.items():
        assert old in source
        source = source.replace(old, new)
    with torch.random.fork_rng():
        exec(compile(source, "README.md", "exec"), {"__name__": "__main__"})
    lines = capsys.readouterr().out.splitlines()
    for line, expected in zip(lines, shown.splitlines(), strict=True):
        head = r"^depth \d+ \(proved|^\w+: "
        assert re.match(head, line)[0] == re.match(head, expected)[0]
    if seed is not None:
        shares = [float(re.search(r"([\d.]+)% of the optimum", line)[1]) for line in lines[:2]]
        low, high, last = map(
            float, re.search(r"in ([\d.]+) to ([\d.]+)%, .* or ([\d.]+)%", README).groups()
        )
        assert low - 1 < shares[0] < high + 1  # another processor rounds otherwise
        assert shares[1] < last + 1


def test_the_first_table_is_that_of_the_scoreboard_and_of_the_page():
    found = collections.defaultdict(list)
    for row in read_rows(ROOT / "docs" / "scoreboard.json"):
        if row.task == "worst-20":
            found[row.name.partition(",")[0]].append((row.value, 481 - row.details["cut"]))
    page = (ROOT / "docs/howto/win.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?:strength|of 481).*", page, re.MULTILINE)
    numbers = [[*map(float, row.split("|")[2:12])] for row in rows]
    pairs = zip(*numbers, strict=True)
    assert f"starts above is {found['any'][0][0]:.3f}" in README
    found["win"] = [(value, 481 - cut) for value, cut in pairs]
    table = re.findall(
        r"^\| `?(\w+)`?.* \| (0\.\d+)(?: \((.*) to (.*)\))? \| (\d+) of 481 \|", README, re.M
    )
    assert [row[0] for row in table] == ["win", "DDQN", "DQN", "PPO", "zeillinger"]
    for name, mean, low, high, won in table:
        values, starts = zip(*found[name], strict=True)
        assert f"{fmean(values):.3f}" == mean
        assert int(fmean(starts)) == int(won)
        assert len(values) == {"win": 10, "zeillinger": 1}.get(name, 5)
        assert not low or (float(low), float(high)) == (min(values), max(values))


def test_a_model_of_sb3_is_measured(monkeypatch, capsys):
    few = partial(resgym.exploitability, positions=50)
    monkeypatch.setattr(resgym, "exploitability", few)
    (source,) = re.findall(
        r"^```python\n(import resgym\n.*?)^```", README, re.MULTILINE | re.DOTALL
    )
    assert source.count("10_000") == 1
    for more, less in (("seed=0).learn(10_000", "n_steps=64).learn(64"), ("limit=5", "limit=1")):
        source = source.replace(more, less)
    exec(compile(source, "README.md", "exec"), {})
    shown = capsys.readouterr().out
    assert re.search(r"^host PPO +best play +worst case", shown, re.MULTILINE)
    assert re.search(r"^mean of 100 ", shown, re.MULTILINE)


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
    if command[1] == "certificate":  # made by the command before
        assert main(["solve", "E8", "--certificate", command[2]]) == 0
    assert main([*command[1:], *less.get(command[1], [])]) == 0
    assert capsys.readouterr().out.strip()


# What makes each of them short; of a repeated option the last one counts.
LESS = {
    "sb3_ext quickstart": "--updates 2 --games 10",
    "sb3_ext.train": "-n 2048 --eval-freq -1 --checkpoint-updates 0",
    "sb3_ext.enjoy": "-n 20",
    "sb3_ext.two_player": "--steps 4 --set evaluation.games=10 --set evaluation.action_games=5",
    "sb3_ext.teach": "--set updates=5 --set batch_size=16",
    "sb3_ext curves": "",
    "sb3_ext.attack": "--set seeds=[0] --set updates=2 --set test.games=20 "
    "--set validation.games=20 --set exact=null --set lookahead=0",
}


@pytest.fixture
def installed(tmp_path):
    """Where to import from to have `sb3_ext` as a wheel has it, without a checkout around it."""
    wheel = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("wheel.force-include]\n")[1]
    (source, target), *_ = re.findall(r'^(\w+) = "(.*)"$', wheel, flags=re.MULTILINE)
    site = tmp_path / "site"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "sb3_ext", site / "sb3_ext", ignore=ignored)
    shutil.copytree(ROOT / source, site / target)
    return f"{site}{os.pathsep}{ROOT}"


# Runs lines of words as `python -m` would, in a process that imports once.
RUNNER = """
import runpy, sys
for line in sys.stdin.read().splitlines():
    sys.argv = line.split("\\t")[1:]
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        assert not end.code, line
"""


@pytest.mark.parametrize("shorter", [True, pytest.param(False, marks=pytest.mark.long)])
def test_modules_run_in_order_from_an_empty_folder(shorter, tmp_path, installed):
    """As they stand on the page, each after the other, with an installed package."""
    folder = tmp_path / "empty"
    folder.mkdir()
    lines = []
    for command, (name, less) in zip(MODULES, LESS.items(), strict=True):
        assert command.startswith(f"python -m {name}")
        lines.append(shlex.split(f"{command} {less}" if shorter else command)[1:])
    processes = [lines] if shorter else [[line] for line in lines]
    for given in processes:
        where = {"cwd": folder, "env": {**os.environ, "PYTHONPATH": installed}}
        given = "\n".join(map("\t".join, given))
        command = [sys.executable, "-c", RUNNER]
        found = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=3600, **where
        )
        assert found.returncode == 0, f"{given}\n{found.stderr}"
        assert "Traceback" not in found.stderr, given


def test_player_tables_name_every_player(shipped_players):
    tables = PLAYERS.partition("\n## ")[0].split("| agent | plays |")
    for table, known in zip(tables, shipped_players.values(), strict=True):
        rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
        assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(known)
