"""Code of one's own: a module that a command line names, a class that a trusted file names.

Nothing that was saved while training may name code, whatever is trusted.
"""

import sys
from pathlib import Path

import pytest
import yaml

from resgym.game.stepping import REWARDS
from resgym.trust import import_modules, imported_modules
from sb3_ext.cluster.connection import spreading
from sb3_ext.ddqn.algorithms import ALGORITHMS
from sb3_ext.runs.checkpoint import load_checkpoint, save_checkpoint
from sb3_ext.train.play import enjoy
from sb3_ext.train.train import main as train_main
from sb3_ext.two_player import HostAgentTrainer
from sb3_ext.two_player.job import main
from tests.resgym.commands import run
from tests.sb3_ext.two_player.helpers import tiny

TEXT = """
from pathlib import Path

import torch

import resgym
from sb3_ext.ddqn.algorithms import ALGORITHMS
from sb3_ext.ddqn import DDQN

Path(__file__).with_suffix(".imported").touch()


@resgym.register_reward("{name}_half")
def half(move):
    return 0.5 * move.finished.float()


@ALGORITHMS.register("{name}")
class Mine(DDQN):
    pass


class NoAlgorithm:
    pass
"""
PLAYER = """
import torch

import resgym


@resgym.register_agent("{name}_first")
class First:
    role = "agent"

    def act(self, state, coords, rng):
        return coords.int().argmax(1)
"""


@pytest.fixture
def name(request, tmp_path, monkeypatch):
    """The name of a module that nobody has imported, in the working folder."""
    found = f"own_{abs(hash(request.node.name))}"
    (tmp_path / f"{found}.py").write_text(TEXT.format(name=found))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    # Actors import all that was, and what a test leaves behind is nowhere any more.
    monkeypatch.setattr("resgym.trust._modules", {})
    yield found
    for table, key in ((ALGORITHMS, found), (REWARDS, f"{found}_half"), (sys.modules, found)):
        table.pop(key, None)


def was_imported(name):
    return Path(f"{name}.imported").exists()


def two_player(*arguments):
    return main([*map(str, arguments), "--no-progress"])


@pytest.fixture
def config(tmp_path):
    def write(*settings):
        path = tmp_path / "own.yml"
        path.write_text(yaml.safe_dump(tiny(*settings), sort_keys=False))
        return path

    return write


def refused(capsys, *arguments):
    """The one line on stderr of a command that is refused."""
    capsys.readouterr()
    assert two_player(*arguments) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


def test_resgym_knows_the_players_of_a_module(tmp_path, monkeypatch, capsys):
    (tmp_path / "own_players.py").write_text(PLAYER.format(name="own"))
    monkeypatch.chdir(tmp_path)
    # Without the working folder, as the script `resgym` has it.
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    command = ("rho", "random", "own_first", "--games", "40", "--import", "own_players")
    code, shown, told = run(capsys, *command)
    assert (code, told) == (0, "")
    _, expected, _ = run(capsys, "rho", "random", "choose_first", *command[3:5])
    assert shown.split(",")[0] == expected.split(",")[0]


def test_names_of_a_module_train_and_go_on(name, config, tmp_path, capsys):
    own = config(f"roles.host.algorithm={name}", f"roles.host.reward={name}_half")
    assert f"unknown algorithm '{name}'" in refused(capsys, "--config", own)
    out = tmp_path / "run"
    assert two_player("--config", own, "--import", name, "--out", out) == 0
    trainer = HostAgentTrainer.load(out / "checkpoints")
    assert type(trainer.roles["host"].model).__name__ == "Mine"
    rewards = trainer.roles["host"].model.replay_buffer.sample(256).rewards
    assert set(rewards.flatten().tolist()) == {0.0, 0.5}


@pytest.mark.parametrize("trust", [["--trust"], ["--import"]])
def test_a_path_of_a_class_needs_trust(name, config, tmp_path, capsys, trust):
    own = config(f"roles.host.algorithm={name}:Mine")
    text = refused(capsys, "--config", own)
    assert f"roles.host.algorithm: got '{name}:Mine', which imports code" in text
    assert not was_imported(name)
    trust = trust if trust == ["--trust"] else [*trust, name]
    assert two_player("--config", own, *trust, "--out", tmp_path / "run", "--steps", 1) == 0
    assert was_imported(name)
    assert name in imported_modules()


SAVED = {
    "algorithm": lambda role, path: role.update(algorithm=path),
    "callback": lambda role, path: role.update(callbacks=[{"callback": path}]),
    "optimizer": lambda role, path: role["optimizer"].update(name=path),
    "buffer": lambda role, path: role["replay_buffer"].update(name=path),
}


@pytest.mark.parametrize("field", SAVED)
def test_a_checkpoint_imports_nothing_whatever_is_trusted(name, field, tmp_path, config, capsys):
    out = tmp_path / "run"
    assert two_player("--config", config(), "--out", out, "--steps", 1) == 0
    state = load_checkpoint(out / "checkpoints")
    SAVED[field](state["trainer"]["config"]["roles"]["host"], f"{name}:Mine")
    save_checkpoint(out / "checkpoints" / "checkpoint-000000000002", state)
    with pytest.raises(ValueError, match="imports code"):
        HostAgentTrainer.load(out / "checkpoints")
    assert "config.yml was changed" in refused(capsys, "--resume", out, "--trust")
    assert not was_imported(name)


def small_training(tmp_path):
    arguments = ["--env", "resgym/HironakaHost-v0", "-n", "64", "--eval-freq", "-1", "--verbose"]
    arguments += ["0", "-f", str(tmp_path / "logs"), "--hyperparams", "n_envs:8", "batch_size:16"]
    return [*arguments, "learning_starts:32", "buffer_size:200"]


def test_an_algorithm_of_train_may_be_a_class(name, tmp_path, capsys):
    algorithm, arguments = f"{name}:Mine", small_training(tmp_path)
    assert train_main(["--algo", f"{name}:NoAlgorithm", *arguments]) == 2
    assert "must be a class derived from BaseAlgorithm" in capsys.readouterr().err
    assert train_main(["--algo", algorithm, *arguments]) == 0
    played = ["--algo", algorithm, "--env", "resgym/HironakaHost-v0", "--no-render", "-n", "8"]
    assert enjoy([*played, "-f", str(tmp_path / "logs")]) == 0
    (saved,) = (tmp_path / "logs" / algorithm).glob("*/config.yml")
    run = saved.parent
    assert train_main(["--resume", str(run), "-n", "128"]) == 2  # it does not know the command
    assert train_main(["--resume", str(run), "-n", "128", "--import", name]) == 0
    # What a run says imports nothing.
    (tmp_path / "not_named.py").write_text(TEXT.format(name="not_named"))
    saved.write_text(saved.read_text().replace(algorithm, "not_named:Mine"))
    assert train_main(["--resume", str(run), "--trust"]) == 2
    assert "algo: got 'not_named:Mine', which imports code" in capsys.readouterr().err
    assert not was_imported("not_named")


def is_known(name):
    return name in ALGORITHMS


@pytest.mark.long
def test_processes_of_a_cluster_import_what_the_command_line_named(name):
    pytest.importorskip("ray", reason="needs the extra: pip install 'resgym[cluster]'")
    import_modules([name])
    with spreading(1) as spread:
        assert list(spread(is_known, [name])) == [True]
