"""``train`` in several ranks: one run, one folder, one that speaks; killed, refused and resumed."""

import io
import os
from contextlib import redirect_stderr, redirect_stdout

import pytest
import torch

from sb3_ext.adapter.tensor_vec_env import TensorVecEnv
from sb3_ext.runs.checkpoint import list_checkpoints, load_checkpoint
from sb3_ext.runs.command import start
from sb3_ext.train.train import main as train
from tests.sb3_ext.ranks.processes import forked
from tests.sb3_ext.runs.killed import contents, die_at

GAME = "resgym/HironakaHost-v0"
RUN = ("--algo", "ddqn", "--env", GAME, "-n", "640", "--checkpoint-updates", "10", "--seed", "3")
RUN += ("--eval-freq", "160", "--eval-episodes", "20", "--n-eval-envs", "4", "--log-interval", "7")
NUMBERS = ("n_envs:8", "learning_starts:64", "batch_size:16", "buffer_size:1000")
NUMBERS += ("policy_kwargs:{net_arch: [16]}", "learning_rate:0.01")


def started(arguments, size=2, kill=()):
    """Code, stdout and stderr of ``train`` in each rank; None where it was killed."""

    def work(rank):
        if kill:
            die_at(kill[rank], TensorVecEnv, "step_tensors")
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                code = train(list(arguments))
            except SystemExit as end:
                code = int(str(end.code))
        return code, out.getvalue(), err.getvalue()

    return forked(work, size) if size > 1 else [work(0)]


def run_in(folder):
    return folder / "ddqn" / f"{GAME.replace('/', '-')}_1"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with a run of two ranks, and what they answered."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, started(("-f", str(folder), *RUN, "-params", *NUMBERS))


def test_ranks_make_one_run(whole, tmp_path):
    """The same counters and files as of one process with the same file; one speaks and writes."""
    folder, (first, second) = whole
    assert (first[0], second) == (0, (0, "", ""))
    assert "Eval num_timesteps=640" in first[1]
    started(("-f", str(tmp_path / "one"), *RUN, "-params", *NUMBERS), size=1)
    two, one = run_in(folder), run_in(tmp_path / "one")
    assert {path.name for path in two.iterdir()} == {path.name for path in one.iterdir()}
    config = f"{GAME.replace('/', '-')}/config.yml"
    assert (two / config).read_text() == (one / config).read_text()
    newest = list_checkpoints(two)[0]
    parts = [load_checkpoint(newest), load_checkpoint(newest / "rank-1")]
    alone = load_checkpoint(list_checkpoints(one)[0])
    for part in parts:
        for name in ("_n_updates", "_updates_owed", "num_target_updates", "num_timesteps"):
            assert part["training"][name] == alone["training"][name]
        assert part["model"]["n_envs"] == 4
    weights = [part["policy"] for part in parts]
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())


@pytest.mark.parametrize(
    "kills", [("none", "step:40"), pytest.param(("step:61", "none"), marks=pytest.mark.long)]
)
def test_killed_ranks_go_on_as_if_nothing_had_happened(whole, tmp_path, kills):
    """One is killed, the other ends in a line; then every file becomes that of a whole run."""
    results = started(("-f", str(tmp_path), *RUN, "-params", *NUMBERS), kill=kills)
    for kill, result in zip(kills, results, strict=True):
        if kill == "none":
            assert result[0] == 1
            assert "another rank has ended" in result[2]
        else:
            assert result is None
    again = started(("--resume", str(run_in(tmp_path))))
    assert (again[0][0], again[1]) == (0, (0, "", ""))
    found, expected = contents(run_in(tmp_path)), contents(run_in(whole[0]))
    assert any(name.endswith("/rank-1") for name in expected)
    names = found.keys() | expected.keys()
    assert [name for name in names if found.get(name) != expected.get(name)] == []


def test_another_number_of_ranks_cannot_go_on(whole):
    run = run_in(whole[0])
    files = contents(run)
    ((code, _, err),) = started(("--resume", str(run)), 1)
    assert code == 2
    assert "was written by 2 ranks, here are 1: continue with torchrun" in err
    assert err.count("\n") == 1
    assert contents(run) == files


@pytest.mark.parametrize(
    ("options", "numbers", "words"),
    [
        ((), ("n_envs:7",), "n_envs: must be a multiple of the number of ranks, 2, got 7"),
        ((), ("policy_kwargs:{net_arch: [16, b]}",), "ranks: exclude BatchNorm"),
        (("--actors", "2"), (), "actors: must be 0 with several ranks, got 2"),
        (("--env", "resgym/Nothing-v0"), (), "unknown environment 'resgym/Nothing-v0'"),
    ],
)
def test_bad_input_is_one_line_of_each_rank(tmp_path, options, numbers, words):
    arguments = ("-f", str(tmp_path), *RUN, *options, "-params", *NUMBERS, *numbers)
    for code, _, err in started(arguments):
        assert code == 2
        assert words in err
        assert err.count("\n") == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock"] == []


def test_other_commands_are_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["two_player", "--config", "small"])
    monkeypatch.setitem(os.environ, "WORLD_SIZE", "2")
    assert start("two_player", "sb3_ext.two_player.job") == 2
    assert "torchrun can start only train, got 2 ranks" in capsys.readouterr().err
