"""SB3's own tests on our classes: which are run, what is replaced, and what is said."""

import subprocess
import sys
from pathlib import Path

import pytest
import stable_baselines3

import sb3_ext
from benchmarks import peers

# A suite in the form of SB3's.
SUITE = """
import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.off_policy_algorithm import ReplayBuffer as Used

@pytest.mark.parametrize("kind", [DQN, PPO])
def test_name(kind):
    assert kind.__name__ != "DQN"

def test_fails():
    assert DQN.__name__ == "DQN"

def test_buffer():
    assert ReplayBuffer is Used
    assert ReplayBuffer.__name__ == "TensorReplayBuffer"
"""


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """A source of the installed version."""
    (tmp_path / "stable_baselines3").mkdir()
    version = tmp_path / "stable_baselines3" / "version.txt"
    version.write_text(stable_baselines3.__version__ + "\n")
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_algorithms.py").write_text(SUITE)
    monkeypatch.setenv("SB3_SOURCE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("part", "listed", "code", "expected"),
    [
        ("ddqn", "test_fails", 0, ["1 of 2 pass, 1 fail for a reason"]),
        (
            "buffer",
            "test_buffer",
            1,
            [
                "2 of 3 pass, 0 fail for a reason",
                "not listed: test_algorithms.py::test_name[DQN]",
                "listed, but passes: test_algorithms.py::test_buffer",
            ],
        ),
    ],
)
def test_parts_replace_classes_and_compare_with_the_page(
    part, listed, code, expected, suite, monkeypatch, capsys
):
    monkeypatch.setattr(peers, "ROOT", Path(suite))
    monkeypatch.setattr(peers, "LISTED", suite / "page.md")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    peers.LISTED.write_text(f"| `test_algorithms.py::{listed}` | a reason |\n")
    assert peers.main(["--only", part]) == code
    said = capsys.readouterr().out
    assert all(each in said for each in expected)


def test_without_the_source_it_is_said_how_to_get_it(suite, monkeypatch, capsys):
    for version in ("1.0", None):
        if version is None:
            monkeypatch.delenv("SB3_SOURCE")
        else:
            (suite / "stable_baselines3" / "version.txt").write_text(version)
        assert peers.main([]) == 2
        assert "SB3_SOURCE: got" in (said := capsys.readouterr().err)
        assert f"stable-baselines3=={stable_baselines3.__version__}" in said


def test_the_page_names_tests_with_reasons():
    names = peers.listed(peers.LISTED.read_text(encoding="utf-8"))
    assert "test_run.py::test_warn_dqn_multi_env" in names
    assert peers.is_listed("test_save_load.py::test_save_load_replay_buffer[DDQN]", names)
    assert not peers.is_listed("test_save_load.py::test_warn_buffer[False-DDQN]", names)


def test_names_of_the_package_are_lazy():
    """Nothing heavy is loaded before a name is used."""
    code = "import sys, sb3_ext; assert not {'torch', 'stable_baselines3'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert sb3_ext.DDQN.__name__ == "DDQN"
    assert {"DDQN", "TensorVecEnv", "exploit"} <= {*dir(sb3_ext)}
