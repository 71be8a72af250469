"""The programs of docs/clients.md run, each where its library is installed."""

from pathlib import Path

import pytest
import torch

PAGE = (Path(__file__).resolve().parents[1] / "docs/clients.md").read_text(encoding="utf-8")
FOLDER = Path(__file__).resolve().parents[1] / "docs" / "clients"
LIBRARIES = {
    "open_spiel": "pyspiel",
    "pettingzoo": "pettingzoo",
    "rllib": "ray.rllib",
    "tianshou": "tianshou",
    "torchrl": "torchrl",
}


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.filterwarnings("ignore")  # of the libraries themselves
def test_the_program_runs(name, capsys):
    reason = f"needs {name}, which is no requirement"
    pytest.importorskip(LIBRARIES[name], reason=reason, exc_type=ImportError)
    program = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    with torch.random.fork_rng():
        exec(compile(program, f"docs/clients/{name}.py", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.strip()


def test_every_program_is_on_the_page_and_run():
    files = sorted(path.stem for path in FOLDER.glob("*.py"))
    assert files == sorted(LIBRARIES)
    assert all(f"{{literalinclude}} clients/{name}.py" in PAGE for name in files)
