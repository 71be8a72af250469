"""SB3's own tests on our classes: which are run, what is replaced, and what is said."""

from pathlib import Path

import pytest
import stable_baselines3
from stable_baselines3.common import env_util, vec_env

from benchmarks import peers
from sb3_ext import DDQN, TensorVecEnv

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
    assert DQN.__name__ == "PPO"

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


def test_a_part_replaces_classes_and_compares_with_the_page(suite, monkeypatch, capsys):
    monkeypatch.setattr(peers, "ROOT", suite)
    monkeypatch.setattr(peers, "LISTED", suite / "page.md")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    listed = (f"| `test_algorithms.py::{name}` | why |\n" for name in ("test_name", "test_buffer"))
    peers.LISTED.write_text("".join(listed))
    assert peers.main(["--only", "buffer"]) == 1
    said = capsys.readouterr().out
    assert "1 of 3 pass, 1 fail for a reason" in said
    assert "not listed: test_algorithms.py::test_fails" in said
    assert "listed, but passes: test_algorithms.py::test_buffer" in said
    monkeypatch.setattr(peers, "run_part", lambda *_: 0)
    assert peers.main([]) == 0


@pytest.mark.parametrize(
    ("part", "name", "ours", "modules"),
    [
        ("ddqn", "DQN", DDQN, [stable_baselines3]),
        ("vec_env", "DummyVecEnv", TensorVecEnv, [vec_env, env_util]),
    ],
)
def test_other_parts_replace_theirs(part, name, ours, modules, monkeypatch):
    for module in modules:
        monkeypatch.setattr(module, name, getattr(module, name))  # comes back after the test
    peers.PARTS[part][1]()
    assert all(issubclass(getattr(module, name), ours) for module in modules)


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
