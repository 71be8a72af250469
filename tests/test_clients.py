"""The programs of docs/clients.md run, each where its library is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

PAGE = (Path(__file__).resolve().parents[1] / "docs/clients.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
PROGRAMS = {
    name: re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    for name, text in SECTIONS.items()
}
LIBRARIES = {
    "OpenSpiel": "pyspiel",
    "PettingZoo": "pettingzoo",
    "RLlib": "ray.rllib",
    "Tianshou": "tianshou",
    "TorchRL": "torchrl",
}


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.filterwarnings("ignore")  # of the libraries themselves
def test_the_program_runs(name, capsys):
    reason = f"needs {name}, which is no requirement"
    pytest.importorskip(LIBRARIES[name], reason=reason, exc_type=ImportError)
    (program,) = PROGRAMS[name]
    with torch.random.fork_rng():
        exec(compile(program, f"docs/clients.md, {name}", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.strip()


def test_every_program_of_the_page_is_run():
    assert {name for name, programs in PROGRAMS.items() if programs} == set(LIBRARIES)
    for name in set(SECTIONS) - set(LIBRARIES) - {"Stable-baselines3"}:
        assert "Not tried" in SECTIONS[name]
