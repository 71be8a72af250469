"""The code gets no heavier, no function longer and no file larger than the tables here allow.

`make weight` prints the figures. A table may only lose entries: what is mended leaves it.
"""

import ast
from pathlib import Path

import pytest

from benchmarks.weight import caps, docstring_of, files, rooms

ROOT = Path(__file__).resolve().parents[1]
MOST_LINES, MOST_PARAMETERS, MOST_FILE = 60, 8, 400

KERNELS = "a compiled loop gets plain arrays and numbers, which no object can hold for it"
SB3 = "the arguments are those of SB3's constructor, and ours"
SOURCE = "one source, which is read plainly and, as a whole, a second time by the compiler"
GAME = "the sizes and options of a game, by the names that `make_vec` gives them"

# Longer than 60 lines (docstrings apart) or with more than 8 parameters, and why that stays.
WITH_REASON = {
    "resgym/envs/environments.py: HironakaVectorEnv.__init__": GAME,
    "resgym/kernels/cpu/step.py: _start_row": KERNELS,
    "resgym/kernels/cpu/step.py: _step_rows": KERNELS,
    "resgym/kernels/cpu/step.py: step_rows": KERNELS,
    "resgym/cuda/kernels.py: step_games": KERNELS,
    "resgym/cuda/rules.py: draw_starts": KERNELS,
    "resgym/cuda/rules.py: store_points": KERNELS,
    "resgym/measure/exploitability.py: exploitability": "policy, starts, game and limits by name",
    "resgym/measure/rho.py: rho": GAME,
    "resgym/solver/kernels.py: 623 lines": SOURCE,
    "resgym/solver/kernels.py: next_question": KERNELS,
    "sb3_ext/ddqn/ddqn.py: 557 lines": "one class, whose loop, acting and updates are one story",
    "sb3_ext/ddqn/ddqn.py: DDQN.__init__": SB3,
    "sb3_ext/ddqn/policies.py: QPolicy.__init__": SB3,
    "sb3_ext/replay/buffers.py: TensorReplayBuffer.__init__": SB3,
}
# The same without a reason: nothing may be added.
NOT_YET = {
    "resgym/solver/solve.py: solve",
    "resgym/trees/growth.py: resolution_tree",
}


def functions(node, within=""):
    """All functions in a tree by their names, such as ``Class.method``."""
    for child in ast.iter_child_nodes(node):
        name = within
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{within}{child.name}."
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name[:-1], child
        yield from functions(child, name)


def is_large(function):
    lines = function.end_lineno - function.lineno + 1
    if (text := docstring_of(function)) is not None:
        lines -= text.end_lineno - text.lineno + 1
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    parameters = len(names) - (names[:1] in (["self"], ["cls"]))
    return lines > MOST_LINES or parameters > MOST_PARAMETERS


def large(root):
    found = set()
    for path in (path for folder in ("resgym", "sb3_ext") for path in files(folder, root)):
        source, place = path.read_text(encoding="utf-8"), path.relative_to(root).as_posix()
        if (lines := source.count("\n")) > MOST_FILE:
            found.add(f"{place}: {lines} lines")
        named = functions(ast.parse(source))
        found.update(f"{place}: {name}" for name, function in named if is_large(function))
    return found


@pytest.mark.parametrize(("folder", "cap"), caps().items())
def test_nothing_is_heavier_than_its_cap(folder, cap):
    today = rooms(folder).total()
    assert today <= cap, (
        f"{folder} weighs {today:,} tokens, its cap is {cap:,}. Make something lighter; the cap in "
        "pyproject.toml is raised only by a commit of its own, with what the reader gets for it in "
        "CHANGELOG.md"
    )


def test_functions_and_files_stay_small():
    found = large(ROOT)
    listed = NOT_YET | set(WITH_REASON)
    new, mended = sorted(found - listed), sorted(listed - found)
    assert not new, f"more than 60 lines, 8 parameters or a file of 400 lines: {new}"
    assert not mended, f"no longer too large, so take it off the table: {mended}"


def test_the_checks_bite(tmp_path):
    many = ", ".join("abcdefghi")
    texts = {
        "resgym/long.py": "class C:\n    def f(self):\n" + "        x = 1\n" * 61,
        "resgym/wide.py": f"def f({many}): pass\n\ndef g(self, {many[3:]}): pass\n",
        "sb3_ext/file.py": "\n" * 401,
        "sb3_ext/short.pyi": 'def f():\n    """' + "\n" * 70 + '    """\n    f"{x!r} {x:>{x}}"\n',
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    expected = {"resgym/long.py: C.f", "resgym/wide.py: f", "sb3_ext/file.py: 401 lines"}
    assert large(tmp_path) == expected
    assert rooms("sb3_ext", tmp_path).total() == 6
