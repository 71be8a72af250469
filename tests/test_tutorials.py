"""Tutorials, how-tos, pages of environments and programs for other libraries run as written."""

import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest
import torch

from resgym.benchmark import load, tasks

DOCS = Path(__file__).resolve().parents[1] / "docs"
FOLDERS = ("tutorials", "howto", "environments")
PAGES = sorted(
    (*(page for name in FOLDERS for page in (DOCS / name).glob("*.md")), DOCS / "environments.md")
)
# What only takes long; every line runs.
LESS = {".learn(60_000)": ".learn(3_000)", "games=2_000": "games=100", '=20"': '=2"'}
LESS |= {"seconds=60": "seconds=2", "time_limit=5": "time_limit=1"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # A few positions of each task of the scoreboard.
    monkeypatch.setattr(tasks, "load", lambda part: load(part).select(torch.arange(4)))
    names = {"__name__": "__main__"}
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:python|{code-cell} python3)\n(.*?)```", text, re.DOTALL)
    assert blocks or "literalinclude" in text
    for block in blocks:
        for more, less in LESS.items():
            block = block.replace(more, less)
        exec(compile(block, str(page), "exec"), names)


CLIENTS = DOCS / "clients"
LIBRARIES = {name: name for name in ("pettingzoo", "tianshou", "torchrl")}
LIBRARIES |= {"gymnasium": "moviepy"}  # for its videos, of batches since Gymnasium 1.2
LIBRARIES |= {"open_spiel": "pyspiel", "rllib": "ray.rllib"}


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.filterwarnings("ignore")  # of the libraries themselves
def test_the_program_runs_alone(name, tmp_path):
    reason = f"needs {name}, which is no requirement"
    pytest.importorskip(LIBRARIES[name], reason=reason, exc_type=ImportError)
    if name == "gymnasium" and not hasattr(gymnasium.wrappers.vector, "RecordVideo"):
        pytest.skip("this Gymnasium records no videos of batches")
    program = [sys.executable, str(CLIENTS / f"with_{name}.py")]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_every_program_is_on_the_page_and_run():
    files = sorted(path.stem for path in CLIENTS.glob("*.py"))
    assert files == sorted(f"with_{name}" for name in LIBRARIES)
    page = CLIENTS.with_suffix(".md").read_text(encoding="utf-8")
    assert all(f"{{literalinclude}} clients/{name}.py" in page for name in files)
