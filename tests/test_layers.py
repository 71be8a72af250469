"""Imports go one way: a module imports only from its own level or a lower one.

The levels are a table here; a new package has to be entered. All imports count, also those inside
functions and under TYPE_CHECKING. Within one level the packages may not import each other in a
circle. The checker itself is tried on small trees that are wrong on purpose.
"""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

LEVELS = {
    "resgym.game": 0,
    "resgym.kernels": 0,
    "resgym.players": 1,
    "resgym.envs": 2,
    "resgym.analysis": 3,
    "resgym.testing": 3,
    "sb3_ext.adapter": 3,
    "resgym": 4,  # resgym/__init__.py, which gathers the public names
    "resgym.__main__": 4,
    "resgym.cli": 4,
    "sb3_ext.common": 4,
    "sb3_ext.callbacks": 5,
    "sb3_ext.ddqn": 5,
    "sb3_ext.two_player": 6,
    "sb3_ext": 7,  # sb3_ext/__init__.py
    "sb3_ext.ade_table": 7,
    "sb3_ext.attack": 7,
    "sb3_ext.curves": 7,
    "sb3_ext.enjoy": 7,
    "sb3_ext.plot_train": 7,
    "sb3_ext.quickstart": 7,
    "sb3_ext.record_video": 7,
    "sb3_ext.results": 7,
    "sb3_ext.teach": 7,
    "sb3_ext.testing": 7,
    "sb3_ext.train": 7,
    "sb3_ext.training": 7,
}

# What a package must not import whatever the level: outside packages, and the game's rules in
# code that learns from any environment.
FORBIDDEN = {
    "resgym": ("rl_zoo3", "sb3_contrib", "sb3_ext", "stable_baselines3"),
    "sb3_ext.adapter": ("resgym",),
    "sb3_ext.callbacks": ("resgym",),
    "sb3_ext.common": ("resgym",),
    "sb3_ext.ddqn": ("resgym",),
}
EXCEPT = {
    "sb3_ext.callbacks": ("resgym.analysis", "resgym.players"),
    "sb3_ext.ddqn": ("resgym.kernels.compiled",),  # how to compile; nothing of the game
}


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def group_of(module: str) -> str:
    """The entry of LEVELS that a module belongs to, or its own first two names if there is none."""
    return ".".join(module.split(".")[:2])


def modules_of(root: Path) -> dict[str, Path]:
    found = {}
    for package in ("resgym", "sb3_ext"):
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(module: str, path: Path, modules: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """Line number and full name of everything that a module imports."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                # "from a import b" takes the module a.b where there is one, else a name of a.
                inner = f"{source}.{alias.name}"
                yield node.lineno, inner if inner in modules else source


def violations(root: Path) -> list[str]:
    """One line for every import that breaks a rule, and for every package without a level."""
    modules = modules_of(root)
    found = []
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        group = group_of(module)
        if group not in LEVELS:
            found.append(f"{module}: {group} has no level in tests/test_layers.py")
            continue
        for line, target in imports_of(module, path, modules):
            where = f"{path.relative_to(root).as_posix()}:{line}: {module} imports {target}"
            for package, names in FORBIDDEN.items():
                allowed = any(within(target, name) for name in EXCEPT.get(package, ()))
                if within(module, package) and not allowed:
                    found += [
                        f"{where}, which {package} must not"
                        for name in names
                        if within(target, name)
                    ]
            target_group = group_of(target)
            if target.split(".")[0] not in ("resgym", "sb3_ext") or target_group == group:
                continue
            if target_group not in LEVELS:
                found.append(f"{where}, which has no level in tests/test_layers.py")
            elif LEVELS[target_group] > LEVELS[group]:
                found.append(f"{where}, from level {LEVELS[group]} up to {LEVELS[target_group]}")
            else:
                graph.setdefault(group, set()).add(target_group)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        found.append("circle of imports: " + " -> ".join(error.args[1]))
    return sorted(set(found))


def test_imports_go_one_way():
    assert violations(ROOT) == []


def test_every_package_is_read():
    names = modules_of(ROOT)
    assert "resgym.game.rules" in names
    assert any(within(name, "sb3_ext") for name in names)


def write_tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


CORRECT = {
    "resgym/__init__.py": "from resgym.envs import make\nfrom resgym.game.rules import move\n",
    "resgym/cli.py": "import resgym\nfrom resgym.envs import make\n",
    "resgym/envs/__init__.py": "import torch\nfrom ..game import rules\n",
    "resgym/game/__init__.py": "",
    "resgym/game/rules.py": "from .state import State\nimport numpy.typing\n",
    "resgym/game/state.py": "import stable_baselines\n",
    "sb3_ext/callbacks/rho.py": "from resgym.analysis.rho import rho\n",
    "sb3_ext/common/schedules.py": "import stable_baselines3 as sb3\n",
    "sb3_ext/quickstart.py": "from sb3_ext.common.schedules import Constant\nimport resgym\n",
    "sb3_ext/two_player/trainer.py": "import resgym\nfrom resgym import make\n",
}


def test_checker_accepts_a_correct_tree(tmp_path):
    write_tree(tmp_path, CORRECT)
    assert violations(tmp_path) == []


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("resgym/game/rules.py", "import resgym.envs.make", "from level 0 up to 2"),
        ("resgym/game/rules.py", "from resgym import envs", "from level 0 up to 2"),
        ("resgym/game/rules.py", "from ..envs import make", "from level 0 up to 2"),
        ("resgym/game/__init__.py", "from ..envs import make", "from level 0 up to 2"),
        ("resgym/game/rules.py", "from .. import envs", "from level 0 up to 2"),
        ("resgym/game/rules.py", "from resgym import make", "from level 0 up to 4"),
        ("resgym/game/rules.py", "def f():\n    from resgym import envs", ":2: resgym.game.rules"),
        ("resgym/envs/__init__.py", "import resgym.cli", "from level 2 up to 4"),
        ("resgym/envs/__init__.py", "import stable_baselines3.dqn", "which resgym must not"),
        ("resgym/cli.py", "from sb3_ext.ddqn import DDQN", "which resgym must not"),
        ("resgym/cli.py", "import a, sb3_contrib", "which resgym must not"),
        ("sb3_ext/common/schedules.py", "from resgym.game import rules", "sb3_ext.common must not"),
        ("sb3_ext/adapter/vec.py", "import resgym", "which sb3_ext.adapter must not"),
        ("sb3_ext/ddqn/targets.py", "import resgym", "which sb3_ext.ddqn must not"),
        ("sb3_ext/ddqn/targets.py", "import sb3_ext.two_player", "from level 5 up to 6"),
        ("sb3_ext/callbacks/rho.py", "from resgym import rho", "which sb3_ext.callbacks must not"),
        ("sb3_ext/callbacks/rho.py", "import resgym.envs", "which sb3_ext.callbacks must not"),
        ("resgym/extra/__init__.py", "", "resgym.extra has no level"),
        ("resgym/cli.py", "import resgym.extra", "which has no level"),
    ],
)
def test_checker_finds_what_is_wrong(tmp_path, file, text, expected):
    write_tree(tmp_path, CORRECT | {file: text + "\n"})
    found = violations(tmp_path)
    assert found
    assert any(expected in line for line in found), found


def test_checker_finds_a_circle_within_one_level(tmp_path):
    circle = {
        "resgym/game/rules.py": "from resgym.kernels import dispatch\n",
        "resgym/kernels/dispatch.py": "from resgym.game import state\n",
    }
    write_tree(tmp_path, CORRECT | circle)
    (line,) = violations(tmp_path)
    assert line.startswith("circle of imports: ")
    assert "resgym.kernels" in line
