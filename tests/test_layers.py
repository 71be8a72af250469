"""Imports go one way: a module imports only from its own floor or a lower one, never in a circle.

The floors are a table here; a new package has to be entered. All imports count, also those inside
functions and under TYPE_CHECKING. No two modules may import each other in a circle. The checker
itself is tried on small trees that are wrong on purpose.
"""

import ast
import graphlib
import re
from pathlib import Path

import pytest

from resgym.trust import packaged

ROOT = Path(__file__).resolve().parents[1]

# From the ground up, a line a floor. What shares a floor may import each other, though not in a
# circle. The core imports no wing: it names functions of wings as texts, see `resgym.lazy.Lazy`.
CORE = """
resgym.certificate_check resgym.files resgym.texts resgym.trust
resgym.command resgym.game resgym.lazy
resgym.kernels resgym.polynomials
resgym.players
resgym.envs
resgym.trees
resgym.solver
resgym.measure
"""
WINGS = """
resgym.cuda resgym.geometry resgym.pictures resgym.proofs
resgym.app resgym.hironaka_v0 resgym.testing
"""
ABOVE = """
resgym
resgym.__main__ resgym.benchmark resgym.cli resgym.functional resgym.scoreboard
sb3_ext.adapter sb3_ext.config sb3_ext.types
sb3_ext.schedules sb3_ext.runs
sb3_ext.networks sb3_ext.replay sb3_ext.__main__
sb3_ext.checkpoints
sb3_ext.ddqn
sb3_ext.callbacks sb3_ext.cluster
sb3_ext.minimax
sb3_ext.attack sb3_ext.teach sb3_ext.train sb3_ext.two_player
sb3_ext sb3_ext.enjoy
"""
FLOORS = [*filter(None, map(str.split, f"{CORE}{WINGS}{ABOVE}".splitlines()))]
LEVELS = {name: level for level, names in enumerate(FLOORS) for name in names}

# What a package must not import whatever the floor: outside packages, and the game's rules in
# code that learns from any environment.
LEARNING = "adapter callbacks checkpoints cluster config ddqn networks replay runs schedules"
FORBIDDEN = {"resgym": ("rl_zoo3", "sb3_contrib", "sb3_ext", "stable_baselines3")}
FORBIDDEN |= {f"sb3_ext.{name}": ("resgym",) for name in LEARNING.split()}
EXCEPT = {
    # What code and which files are let in, and how they are read; nothing of the game.
    "sb3_ext.checkpoints": ("resgym.files", "resgym.trust"),
    "sb3_ext.cluster": ("resgym.trust",),
    "sb3_ext.config": ("resgym.files", "resgym.lazy", "resgym.texts", "resgym.trust"),
    "sb3_ext.callbacks": ("resgym.measure", "resgym.players"),
    # The sets of a host, and how loops are compiled.
    "sb3_ext.networks": ("resgym.game.spec", "resgym.kernels.cpu.compilation"),
    # Command lines and what they allow, and how files are written.
    "sb3_ext.runs": (
        *("resgym.cli", "resgym.command", "resgym.files", "resgym.texts", "resgym.trust"),
    ),
    "sb3_ext.replay": ("resgym.game.devices",),  # how much memory there is; nothing of the game
}


def within(module, package):
    return module == package or module.startswith(package + ".")


def modules_of(root):
    found = {}
    for package in ("resgym", "sb3_ext"):
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(module, path, modules):
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


def floor_of(module):
    return LEVELS.get(".".join(module.split(".")[:2]))


def violations(root):
    """One line for every import that breaks a rule, every unknown package, and a circle."""
    modules, found = modules_of(root), set()
    graph = {}
    for module, path in modules.items():
        if floor_of(module) is None:
            found.add(f"{module} has no floor in tests/test_layers.py")
            continue
        for line, target in imports_of(module, path, modules):
            where = f"{path.relative_to(root).as_posix()}:{line}: {module} imports {target}"
            for package, names in FORBIDDEN.items():
                allowed = any(within(target, name) for name in EXCEPT.get(package, ()))
                if within(module, package) and not allowed:
                    wrong = any(within(target, name) for name in names)
                    found |= {f"{where}, which {package} must not"} if wrong else set()
            if target.split(".")[0] in ("resgym", "sb3_ext"):
                if (floor_of(target) or 0) > floor_of(module):
                    found.add(f"{where}, from floor {floor_of(module)} up to {floor_of(target)}")
                elif target != module:
                    graph.setdefault(module, set()).add(target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        found.add("circle of imports: " + " -> ".join(error.args[1]))
    return sorted(found)


def test_texts_that_name_functions_of_a_wing_resolve():
    """The core reaches its wings by such texts alone."""
    named = {
        name
        for path in modules_of(ROOT).values()
        for name in re.findall(
            r'"((?:resgym|sb3_ext)(?:\.\w+)+:\w+)"', path.read_text(encoding="utf-8")
        )
    }
    assert {name.split(".")[1] for name in named} >= {"geometry", "pictures", "proofs"}
    assert all(map(callable, map(packaged, named)))


def test_imports_go_one_way():
    assert {"resgym.game.rules", "sb3_ext.ddqn.ddqn"} <= set(modules_of(ROOT))
    assert violations(ROOT) == []


CORRECT = {
    "resgym/__init__.py": "from resgym.envs import make\n",
    "resgym/envs/__init__.py": "import torch\nfrom ..game import rules\n",
    "resgym/game/rules.py": "from .state import State\nimport stable_baselines\n",
    "resgym/kernels/dispatch.py": "def f():\n    import resgym.polynomials.reader\n",
    "resgym/kernels/step.py": "",
    "resgym/polynomials/reader.py": "from ..kernels import step\n",
    "sb3_ext/callbacks/rho.py": "from resgym.measure.rho import rho\n",
    "sb3_ext/two_player/trainer.py": "import resgym\nimport stable_baselines3 as sb3\n",
}


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("resgym/kernels/step.py", "if 1:\n    from .dispatch import Backend", "circle of imports"),
        ("resgym/game/rules.py", "def f():\n    from resgym import envs", ":2: resgym.game.rules"),
        ("resgym/envs/__init__.py", "import stable_baselines3.dqn", "which resgym must not"),
        ("resgym/solver/a.py", "def f():\n    import resgym.proofs", "from floor 6 up to 8"),
        ("sb3_ext/schedules/a.py", "from resgym.game import rules", "sb3_ext.schedules must not"),
        ("sb3_ext/ddqn/legality.py", "import sb3_ext.two_player", "up to 19"),
        ("resgym/extra/__init__.py", "", "resgym.extra has no floor"),
    ],
)
def test_checker_finds_what_is_wrong(tmp_path, file, text, expected):
    for name in (*CORRECT, file):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(CORRECT.get(name, ""), encoding="utf-8")
    assert [line for line in violations(tmp_path) if "no floor" not in line] == []
    (tmp_path / file).write_text(text, encoding="utf-8")
    (line,) = violations(tmp_path)
    assert expected in line
