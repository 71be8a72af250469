"""CONTRIBUTING.md shows code that runs and files that exist; versions agree."""

import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import resgym
import sb3_ext
from sb3_ext.callbacks import CALLBACKS
from tests.sb3_ext.callbacks.helpers import game_model, keep_logs

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
