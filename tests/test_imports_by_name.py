"""A text becomes code, and a file is read, in few places: these tests look for any other."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

PLACES = {
    "resgym/trust.py": "imports what a command line names, and unpacks what Ray's processes send",
    "sb3_ext/config/effects.py": "reads YAML with a loader that makes plain data alone",
    "sb3_ext/train/config_files.py": "imports callbacks and policies of a file that was judged",
    "sb3_ext/train/loading.py": "reads weights with weights_only=True",
}

IMPORTERS = set(
    """
__import__ eval exec execfile find_loader find_module find_spec get_class_by_name import_file
import_module load_env_creator load_module load_source locate resolve_name run_module run_path
spec_from_file_location spec_from_loader
""".split()  # noqa: SIM905
)
UNPICKLERS = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
LOADERS = {
    *("yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load", "torch.load"),
    *("torch.jit.load", "torch.hub.load", "builtins.compile", "code.interact"),
}


def is_constant(call):
    """Whether all arguments of a call stand in the source."""
    return all(isinstance(each, ast.Constant) for each in call.args) and not call.keywords


def second_roads(source):
    """Line and text of everything that could import, run or unpickle by a name."""
    tree = ast.parse(source)
    modules = {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    fine = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call) and is_constant(n)}
    for node in ast.walk(tree):
        found = ""
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [*(each.name for each in node.names), getattr(node, "module", None) or ""]
            parts = {part for name in names for part in name.split(".")}
            renamed = {each.name for each in node.names if each.asname} & IMPORTERS
            found = ", ".join(parts & (UNPICKLERS - {"cloudpickle"}) | renamed)
        elif isinstance(node, ast.Name | ast.Attribute) and id(node) not in fine:
            name = node.id if isinstance(node, ast.Name) else node.attr
            whole = ast.unparse(node)
            if name in IMPORTERS or whole in LOADERS:
                found = whole
            elif name in ("load", "loads", "Unpickler") and isinstance(node, ast.Attribute):
                found = whole if whole.split(".")[-2] in UNPICKLERS else ""
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            about = ast.unparse(node.args[0]) if node.args else ""
            named = len(node.args) > 1 and not isinstance(node.args[1], ast.Constant)
            if called == "getattr" and named and (about in modules or "modules" in about):
                found = ast.unparse(node)
            pickles = [each.value for each in node.keywords if each.arg == "allow_pickle"]
            if called == "compile" or any(ast.unparse(each) != "False" for each in pickles):
                found = ast.unparse(node)
        elif isinstance(node, ast.Constant) and node.value in IMPORTERS:
            found = repr(node.value)  # getattr(importlib, "import_module")
        if found:
            yield node.lineno, found


def test_nothing_else_imports_runs_or_unpickles_by_a_name():
    found = [
        f"{name}:{line}: {text}"
        for package in ("resgym", "sb3_ext")
        for path in sorted((ROOT / package).rglob("*.py"))
        if (name := path.relative_to(ROOT).as_posix()) not in PLACES
        for line, text in second_roads(path.read_text(encoding="utf-8"))
    ]
    assert found == [], "ask resgym.trust for the object"


@pytest.mark.parametrize("name", PLACES)
def test_each_place_needs_its_reason(name):
    assert list(second_roads((ROOT / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "source",
    [
        "import importlib\ndef f(t): return importlib.import_module(t)",
        "from importlib import import_module as get\nget(text)",
        "import importlib as i\ngetattr(i, 'import_module')(text)",
        "__import__(text)",
        "eval(text)",
        "exec(text, {})",
        "run = exec\nrun(text)",
        "exec(compile(text, 'x', 'exec'))",
        "import pkgutil\npkgutil.resolve_name(text)",
        "import pydoc\npydoc.locate(text)",
        "import runpy\nrunpy.run_path(text)",
        "from importlib.util import find_spec\nmap(find_spec, texts)",
        "from importlib import util\nutil.spec_from_file_location('a', text)",
        "import os\ngetattr(os, text)()",
        "import sys\ngetattr(sys.modules[a], b)",
        "import pickle\npickle.loads(data)",
        "from pickle import loads",
        "import cloudpickle\ncloudpickle.loads(data)",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "import numpy as np\nnp.load(path, allow_pickle=flag)",
        "import torch\ntorch.load(path)",
        "import yaml\nyaml.load(text, Loader=yaml.Loader)",
        "import yaml\nyaml.unsafe_load(text)",
        "from rl_zoo3.utils import get_class_by_name\nget_class_by_name(text)",
    ],
)
def test_a_planted_second_road_is_found(source):
    assert list(second_roads(source))


@pytest.mark.parametrize(
    "source",
    [
        "from importlib.util import find_spec\nfind_spec('matplotlib')",
        "import numpy as np\nnp.load(path, allow_pickle=False)",
        "import json, yaml\njson.loads(text), yaml.safe_load(text)",
        "getattr(model, name)",
        "import re\nre.compile(text)",
    ],
)
def test_what_names_no_code_is_not_found(source):
    assert not list(second_roads(source))


READERS = {
    *("open", "os.open", "load_file", "safe_open", "zipfile.ZipFile", "ZipFile"),
    *("json.load", "yaml.safe_load", "yaml.load", "np.load", "torch.load", "pickle.load"),
}
METHODS = {"open", "read_text", "read_bytes"}
KNOWN = {
    "resgym/certificate_check.py": "a checker of certificates that needs no other module",
    "resgym/game/devices.py": "tables of the system",
    "resgym/kernels/cpu/compilation.py": "source files of this package",
    "resgym/command.py": "the null device",
    "resgym/benchmark/solved.py": "checks the bytes of an archive that `opened` has checked",
    "resgym/app/server.py": "opens workers, not files",
    "sb3_ext/adapter/seam.py": "a file that this process writes",
    "sb3_ext/checkpoints/models.py": "inside `opened`",
    "sb3_ext/runs/checkpoint.py": "after `check_content`",
    "sb3_ext/config/effects.py": "a text that `read_text` has read",
    "sb3_ext/runs/driver.py": "a text that was just written",
    "sb3_ext/runs/files.py": "`check_content` itself; files of a run that are appended to",
    "sb3_ext/train/loading.py": "archives whose members are bounded there",
}


def reads(file):
    """Whether a file calls a reader by name."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in READERS or (
                isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
            ):
                yield f"{name}, line {node.lineno}"


def test_only_known_modules_read_files_by_themselves():
    found = {}
    for package in ("resgym", "sb3_ext"):
        for file in (ROOT / package).rglob("*.py"):
            name = file.relative_to(ROOT).as_posix()
            if name != "resgym/files.py" and (calls := [*reads(file)]):
                found[name] = calls
    assert {name: calls for name, calls in found.items() if name not in KNOWN} == {}
    assert found.keys() == KNOWN.keys()
