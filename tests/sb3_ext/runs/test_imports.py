"""Code of one's own: a module that a command line names, a class that a trusted file names.

Nothing that was saved while training may name code, whatever is trusted.
"""

import sys
from pathlib import Path

import pytest

from resgym.game.stepping import REWARDS
from resgym.trust import import_modules
from sb3_ext.cluster.connection import spreading
from sb3_ext.ddqn.algorithms import ALGORITHMS
from sb3_ext.train.play import enjoy
from sb3_ext.train.train import main as train_main
from sb3_ext.two_player import HostAgentTrainer
from sb3_ext.two_player.job import main
from tests.resgym.commands import run
from tests.sb3_ext.helpers import GAME, SMALL_RUN
from tests.sb3_ext.two_player.helpers import written

TEXT = """
from pathlib import Path

import resgym
from sb3_ext.ddqn.algorithms import ALGORITHMS
from sb3_ext.ddqn import DDQN

Path(__file__).with_suffix(".imported").touch()


@resgym.register_reward("{name}_half")
def half(move):
    return 0.5 * move.finished.float()


@resgym.register_agent("{name}_first")
class First:
    role = "agent"

    def act(self, state, coords, rng):
        return coords.int().argmax(1)


@ALGORITHMS.register("{name}")
class Mine(DDQN):
    pass


class NoAlgorithm:
    pass
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


def test_resgym_knows_the_players_of_a_module(name, tmp_path, monkeypatch, capsys):
    # Without the working folder, as the script `resgym` has it.
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each not in ("", str(tmp_path))])
    games = ("--games", "40")
    code, shown, told = run(capsys, "rho", "random", f"{name}_first", *games, "--import", name)
    assert (code, told) == (0, "")
    _, expected, _ = run(capsys, "rho", "random", "choose_first", *games)
    assert shown.split(",")[0] == expected.split(",")[0]


def test_names_of_a_module_train_and_go_on(name, tmp_path, capsys):
    def two_player(*more):
        words = ("--config", own, "--out", str(tmp_path / "run"), "--no-progress", *more)
        return run(capsys, *words, main=main)

    names = f"roles.host.algorithm={name}", f"roles.host.reward={name}_half"
    own = written(tmp_path / "own.yml", *names)
    code, _, refusal = two_player()
    assert (code, refusal.count("\n")) == (2, 1)
    assert f"unknown algorithm '{name}'" in refusal
    assert two_player("--import", name)[0] == 0
    trainer = HostAgentTrainer.load(tmp_path / "run" / "checkpoints")
    assert type(trainer.roles["host"].model).__name__ == "Mine"
    rewards = trainer.roles["host"].model.replay_buffer.sample(256).rewards
    assert set(rewards.flatten().tolist()) == {0.0, 0.5}
    own = written(tmp_path / "path.yml", f"roles.host.algorithm={name}:Mine")
    assert two_player("--import", name, "--dry-run")[0] == 0


def test_an_algorithm_of_train_may_be_a_class(name, tmp_path, capsys):
    algorithm = f"{name}:Mine"
    logs = str(tmp_path / "logs")
    arguments = [*SMALL_RUN, "-f", logs, "-n", "64", "--eval-freq", "-1", "--algo"]
    assert train_main([*arguments, f"{name}:NoAlgorithm"]) == 2
    assert "must be a class derived from BaseAlgorithm" in capsys.readouterr().err
    assert train_main([*arguments, algorithm]) == 0
    assert enjoy(["--algo", algorithm, "--env", GAME, "--no-render", "-n", "8", "-f", logs]) == 0
    (saved,) = (tmp_path / "logs" / algorithm).glob("*/config.yml")
    run = saved.parent
    assert train_main(["--resume", str(run), "-n", "128"]) == 2  # it does not know the command
    assert train_main(["--resume", str(run), "-n", "128", "--import", name]) == 0
    # What a run says imports nothing.
    (tmp_path / "not_named.py").write_text(TEXT.format(name="not_named"))
    saved.write_text(saved.read_text().replace(algorithm, "not_named:Mine"))
    assert train_main(["--resume", str(run), "--trust"]) == 2
    assert "algo: got 'not_named:Mine', which imports code" in capsys.readouterr().err
    assert not Path("not_named.imported").exists()


def is_known(name):
    return name in ALGORITHMS


@pytest.mark.long
def test_processes_of_a_cluster_import_what_the_command_line_named(name):
    pytest.importorskip("ray", reason="needs the extra: pip install 'resgym[cluster]'")
    import_modules([name])
    with spreading(1) as spread:
        assert list(spread(is_known, [name])) == [True]
