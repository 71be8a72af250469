"""What CONTRIBUTING.md and docs/sources.md show runs and exists; versions and counts agree."""

import ast
import re
import runpy
import shlex
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import resgym
import sb3_ext
from resgym.trust import packaged
from sb3_ext.__main__ import COMMANDS as SB3_COMMANDS
from sb3_ext.callbacks import CALLBACKS
from sb3_ext.two_player.job import TwoPlayer
from tests.resgym.commands import run
from tests.sb3_ext.helpers import game_model, keep_logs

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
HOST, CALLBACK = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_callback_logs():
    try:
        exec(compile(CALLBACK, "CONTRIBUTING.md", "exec"), {"__name__": "page"})
        callback = CALLBACKS.resolve("buffer_size")({"updates": 5})
    finally:
        CALLBACKS.pop("buffer_size", None)
    model = game_model(log_interval_updates=5)
    logs = keep_logs(model)
    model.learn(240, callback)
    values = logs.values("buffer/transitions")
    assert values == sorted(values)
    assert 0 < values[0] < values[-1] <= 240


def test_named_files_functions_and_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    pages = ("README.md", "docs/players.md", "docs/commands.md")
    text = PAGE + "".join((ROOT / page).read_text(encoding="utf-8") for page in pages)
    assert [n for n in re.findall(r"`resgym\.(\w+)`", text) if not hasattr(resgym, n)] == []
    targets = set(re.findall(r"(?:^|`)make ([a-z-]+)", text, flags=re.MULTILINE))
    assert {"bench", "check", "test", "test-long", "test-lowest", "train"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    paths = re.findall(r"`((?:resgym|sb3_ext|tests|docs|examples)/[\w./]*)`", PAGE)
    paths += re.findall(r"\]\(([\w./]+)\)", PAGE)
    assert len(paths) > 15
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_one_version_everywhere():
    version = resgym.__version__
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## ([\d.]+)", changes, flags=re.MULTILINE)
    assert re.search(r'^version = "(.+)"$', project, flags=re.MULTILINE)[1] == version
    assert sb3_ext.__version__ == cited["version"] == newest[1] == version
    assert {"cff-version", "message", "title", "authors"} <= set(cited)


def lower_bounds(requirements):
    given = map(Requirement, requirements)
    bounds = {
        each.name: [s.version for s in each.specifier if s.operator == ">="] for each in given
    }
    return {canonicalize_name(name): Version(*bound) for name, bound in bounds.items()}


def pinned(file):
    lines = re.findall(r"^([\w-]+)==(\S+)", (ROOT / file).read_text(), flags=re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in lines}


def test_every_lower_bound_is_a_version_that_the_tests_run_on():
    """Except torch's: older builds for the CPU are hard to get."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    one_set = lower_bounds(extras.pop("docs") + extras.pop("browser"))  # `make docs` knows one
    (every,) = extras.pop("all")
    assert {*extras} == Requirement(every).extras
    bounds = lower_bounds(sum(extras.values(), project["dependencies"]))
    lowest, newest = pinned("constraints-lowest.txt"), pinned("constraints.txt")
    assert bounds.pop("torch") <= lowest.pop("torch") == newest["torch"]
    assert {name: lowest[name] for name in bounds} == bounds
    assert lowest.keys() - bounds.keys() == {"chardet"}  # which requests complains about
    assert {name: newest[name] for name in one_set} == one_set


SOURCES = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
SPANS = sorted(set(re.findall(r"`([^`\n]+)`", SOURCES)))
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
        _, text, _ = run(capsys, "--help", main=packaged(SB3_COMMANDS[words[0]][0]))
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

    head, *sections = SOURCES.split("\n## ")
    counts = []
    for features in map(rows, sections):
        assert all(len(row) == 4 for row in features)
        out = sum(row[2].startswith("*not here*") for row in features)
        counts.append([len(features), len(features) - out, out])
    assert [[int(cell) for cell in row[2:]] for row in rows(head)] == counts
    assert f"{sum(row[0] for row in counts)} features" in SOURCES
