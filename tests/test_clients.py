"""The programs of docs/clients.md run, each where its library is installed."""

import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "clients"
PAGE = FOLDER.with_suffix(".md").read_text(encoding="utf-8")
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
    program = [sys.executable, str(FOLDER / f"with_{name}.py")]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_every_program_is_on_the_page_and_run():
    files = sorted(path.stem for path in FOLDER.glob("*.py"))
    assert files == sorted(f"with_{name}" for name in LIBRARIES)
    assert all(f"{{literalinclude}} clients/{name}.py" in PAGE for name in files)
