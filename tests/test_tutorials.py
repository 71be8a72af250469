"""The tutorials, the how-tos and the pages of the environments run as they are written."""

import re
from pathlib import Path

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
