"""The command line, its folder, and runs that are stopped and resumed."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml

import resgym
from sb3_ext.checkpoints.checkpoint import CheckpointWarning, list_checkpoints
from sb3_ext.ddqn import DDQN
from sb3_ext.two_player import HostAgentTrainer, RunDirectory, read_config, run_directory
from sb3_ext.two_player.job import main
from tests.sb3_ext.two_player.helpers import difference, tiny


@pytest.fixture
def config(tmp_path):
    """A function that writes a tiny configuration to a file and returns its path."""

    def write(*settings, **sections):
        path = tmp_path / "tiny.yml"
        path.write_text(yaml.safe_dump(tiny(*settings, **sections), sort_keys=False))
        return str(path)

    return write


def run(*arguments):
    return main([*map(str, arguments), "--no-progress"])


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def state_of(out):
    return HostAgentTrainer.load(out / "checkpoints").state_dict()


def test_a_run_leaves_everything_in_its_folder(tmp_path, config, capsys):
    out = tmp_path / "run"
    code = run("--config", config("logging.every_steps=2"), "--out", out, "--set", "seed=5")
    assert code == 0
    printed = capsys.readouterr().out
    words = "host-agent", "random-agent", "rho", "entropy", str(out)
    assert [word for word in words if word not in printed] == []
    assert read_config(out / "config.yml").seed == 5
    about = json.loads((out / "run.json").read_text())
    assert about["seed"] == 5
    assert about["command"][-1] == "--no-progress"
    assert "torch" in about["versions"]
    assert "commit" in about
    assert [each["step"] for each in lines(out / "metrics.jsonl")] == [2, 4, 6]
    assert "host/loss" in lines(out / "metrics.jsonl")[0]
    assert [each["step"] for each in lines(out / "evaluations.jsonl")] == [6]
    summary = json.loads((out / "summary.json").read_text())
    assert summary["last"]["values"].keys() == {"host-agent", "host-random", "random-agent"}
    for role in ("host", "agent"):
        assert (out / "best" / f"{role}.zip").is_file()
        best = str(out / "best" / role)
        pair = (best, "random") if role == "host" else ("random", best)
        sizes = {"max_num_points": 5, "max_value": 5}
        found = resgym.rho(*pair, games=20, seed=1, max_moves=20, **sizes).rho
        name = "host-random" if role == "host" else "random-agent"
        assert found == summary["last"]["values"][name]
        assert DDQN.load(out / "models" / f"{role}.zip", device="cpu")._n_updates == 6
    assert len(list_checkpoints(out / "checkpoints")) == 1


def test_steps_and_smoke_and_dry_run(tmp_path, config, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("--config", config(), "--steps", "2", "--out", "a") == 0
    assert json.loads(Path("a/summary.json").read_text())["last"]["step"] == 2
    assert run("--config", "small", "--smoke", "--set", "name=quick") == 0
    assert json.loads(Path("runs/quick/summary.json").read_text())["last"]["step"] == 4
    capsys.readouterr()
    assert run("--config", "host_vs_choose_first", "--dry-run") == 0
    printed = capsys.readouterr().out
    words = "5000 steps", "Discrete(4)", "parameters", "200000 transitions", "does not learn"
    assert [word for word in words if word not in printed] == []
    assert sorted(each.name for each in Path().iterdir() if each.is_dir()) == ["a", "runs"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "--config is missing"),
        (["--config", "smal"], "there is no file 'smal'"),
        (["--config", "small", "--set", "sed=1"], "did you mean 'seed'?"),
        (["--config", "small", "--set", "roles.host.learning_rate=1e-4"], "write 1.0e-4"),
        (
            ["--config", "small", "--steps", "0"],
            "--steps must be a whole number of at least 1, got 0",
        ),
        (["--config", "small", "--steps", str(2**70)], "--steps must be at most"),
        (["--resume", "nowhere"], "--resume: there is no folder nowhere"),
        (["--resume", ".", "--out", "b"], "give only --resume"),
        (["--config", "small", "--init-from", "nowhere"], "--init-from: there is no folder"),
        (["--resume", "."], "there is no"),
        (["--config", "small", "--set", "roles.host.reward=gold"], "roles.host: reward must be"),
        (["--config", "small", "--set", "seed=!!int x"], "--set seed: '!!int x' is no YAML value"),
        (
            ["--config", "small", "--set", f"roles.host.replay_buffer.size={6 * 10**10}"],
            "roles.host.replay_buffer.size: buffer_size: 60000000000 transitions",
        ),
        (
            ["--config", "small", "--set", f"roles.host.replay_buffer.size={10**15}"],
            "roles.host.replay_buffer.size must be at most 68719476736",
        ),
    ],
)
def test_errors_are_one_line_and_code_2(arguments, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("two_player: ")
    assert expected in printed.err
    assert list(tmp_path.iterdir()) == []  # nothing was begun


def test_a_folder_with_a_run_is_not_written_over(tmp_path, config, capsys):
    arguments = ("--config", config(), "--steps", "1", "--out", tmp_path / "run")
    assert run(*arguments) == 0
    before = (tmp_path / "run" / "summary.json").read_bytes()
    assert run(*arguments) == 2
    assert "holds a run already" in capsys.readouterr().err
    assert (tmp_path / "run" / "summary.json").read_bytes() == before
    assert run(*arguments[:-1], tmp_path / "run" / "summary.json" / "run") == 2
    assert "cannot be written to" in capsys.readouterr().err


def test_a_broken_off_run_is_resumed_as_if_it_had_not_been(tmp_path, config):
    settings = ("checkpoint.every_steps=2", "logging.every_steps=1", "evaluation.every_steps=2")
    assert run("--config", config(*settings), "--out", tmp_path / "whole") == 0

    trainer = HostAgentTrainer(tmp_path / "tiny.yml")
    trainer.output = RunDirectory(tmp_path / "broken", trainer.config)

    def crash(each):
        if each.total_steps == 5:
            raise MemoryError

    with pytest.raises(MemoryError):
        trainer.train(callback=crash)
    with (tmp_path / "broken" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 6, "ho')  # a line that the crash cut off
    assert run("--resume", tmp_path / "broken") == 0
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert difference(state_of(whole), state_of(broken)) == []
    assert lines(whole / "evaluations.jsonl") == lines(broken / "evaluations.jsonl")
    assert [each["step"] for each in lines(broken / "metrics.jsonl")] == [1, 2, 3, 4, 5, 6]
    first, second = lines(whole / "metrics.jsonl"), lines(broken / "metrics.jsonl")
    assert [each["host/loss"] for each in first] == [each["host/loss"] for each in second]
    assert lines(broken / "resumed.jsonl")[0]["step"] == 4


def test_resume_refuses_another_experiment(tmp_path, config, capsys):
    out = tmp_path / "run"
    assert run("--config", config(), "--steps", "2", "--out", out) == 0
    other = config("seed=9")
    assert run("--resume", out, "--config", other) == 2
    assert "differs from the configuration of the run" in capsys.readouterr().err
    assert run("--resume", out, "--set", "roles.host.batch_size=4") == 2
    assert "may change only" in capsys.readouterr().err
    assert run("--resume", out, "--set", "training.steps=3") == 0
    assert json.loads((out / "summary.json").read_text())["last"]["step"] == 3
    assert run("--resume", out, "--steps", "2") == 0
    assert json.loads((out / "summary.json").read_text())["last"]["step"] == 5


def test_init_from_starts_a_new_run_from_the_networks(tmp_path, config):
    assert run("--config", config(), "--steps", "3", "--out", tmp_path / "a") == 0
    still = config("roles.host.learning_rate=0.0", "roles.agent.learning_rate=0.0")
    arguments = ("--config", still, "--steps", "1", "--init-from", tmp_path / "a")
    assert run(*arguments, "--out", tmp_path / "b") == 0
    first, second = (
        json.loads((tmp_path / name / "summary.json").read_text())["last"] for name in "ab"
    )
    assert second["values"] == first["values"]
    assert second["step"] == 1


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_damaged_checkpoint_is_passed_over(tmp_path, config, damage):
    out = tmp_path / "run"
    assert run("--config", config("checkpoint.every_steps=2"), "--out", out) == 0
    newest = list_checkpoints(out / "checkpoints")[0] / "host.policy.safetensors"
    content = bytearray(newest.read_bytes())
    if damage == "flip":
        content[-3] ^= 1
    newest.write_bytes(content[:-5] if damage == "cut" else content)
    with pytest.warns(UserWarning, match=r"host\.policy\.safetensors.*going back to"):
        assert run("--resume", out) == 0
    assert lines(out / "resumed.jsonl")[0]["step"] == 4


def test_a_checkpoint_that_a_killed_process_did_not_drop_is_dropped(tmp_path, config):
    out = tmp_path / "run"
    settings = ("checkpoint.every_steps=2", "checkpoint.keep=1")
    assert run("--config", config(*settings), "--steps", "4", "--out", out) == 0
    kept = out / "checkpoints" / "checkpoint-000000000004"
    shutil.copytree(kept, kept.with_name("checkpoint-000000000002"))
    assert run("--resume", out, "--set", "training.steps=4") == 0
    assert sorted(path.name for path in kept.parent.iterdir()) == ["LATEST", kept.name]


def test_nan_ends_with_code_1_and_keeps_the_last_good_checkpoint(
    tmp_path, config, capsys, monkeypatch
):
    original = HostAgentTrainer._checkpoint_if_due

    def spoil(self):
        original(self)
        if self.total_steps == 3:
            with torch.no_grad():
                next(self.roles["host"].policy.q_net.parameters())[0, 0] = torch.nan

    monkeypatch.setattr(HostAgentTrainer, "_checkpoint_if_due", spoil)
    out = tmp_path / "run"
    settings = ("checkpoint.every_steps=2", "checkpoint.keep=1", "logging.every_steps=1")
    assert run("--config", config(*settings), "--out", out) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "roles.host" in error
    assert str(out) in error
    monkeypatch.undo()
    assert state_of(out)["trainer"]["total_steps"] == 2


def test_a_full_disk_is_told_and_training_goes_on(tmp_path, config, monkeypatch):
    def full(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr(RunDirectory, "save_checkpoint", full)
    monkeypatch.setattr(run_directory, "save_player", full)
    trainer = HostAgentTrainer(config("checkpoint.every_steps=2", "evaluation.every_steps=2"))
    trainer.output = RunDirectory(tmp_path / "run", trainer.config)
    with pytest.warns(CheckpointWarning) as told, pytest.raises(OSError, match="disk"):
        trainer.train()  # at the end it is an error
    for what in ("checkpoint", "best version"):
        assert any(f"no {what} was written: disk full" in str(each.message) for each in told)
    assert trainer.total_steps == 6


def test_tensorboard_files_are_written_if_asked_for(tmp_path, config):
    pytest.importorskip("tensorboard")
    out = tmp_path / "run"
    assert run("--config", config("logging.tensorboard=true"), "--steps", "1", "--out", out) == 0
    assert list((out / "tensorboard").iterdir())


def test_signals_stop_or_save_a_real_process(tmp_path, config):
    """SIGUSR1 writes a checkpoint, SIGTERM ends with one; the run can be resumed."""
    out = tmp_path / "run"
    path = config("training.steps=1000000", "checkpoint.every_steps=1000000")
    command = [sys.executable, "-m", "sb3_ext.two_player", "--config", path, "--out", str(out)]
    process = subprocess.Popen(
        [*command, "--set", "logging.every_steps=1", "--no-progress"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(process, lambda: (out / "metrics.jsonl").exists())
        process.send_signal(signal.SIGUSR1)
        wait_for(process, lambda: (out / "checkpoints" / "LATEST").exists())
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        printed, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, errors) == (0, "")
    saved = state_of(out)["trainer"]
    assert f"stopped after step {saved['total_steps']}; --resume {out} goes on" in printed
    # It was saved at once: an evaluation may take longer than a machine waits.
    assert saved["history"] == []
    assert json.loads((out / "summary.json").read_text())["last"] is None


def wait_for(process, condition):
    for _ in range(1200):
        if condition():
            return
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    raise AssertionError("it took more than a minute")
