"""The command line, shipped files, a run's folder, and runs that are stopped and resumed."""

import json
import re
import runpy
import signal
from functools import partial
from pathlib import Path

import pytest
import yaml

import resgym
from sb3_ext.ddqn import DDQN
from sb3_ext.runs.checkpoint import list_checkpoints
from sb3_ext.runs.driver import parser_of
from sb3_ext.two_player import HostAgentTrainer, read_config, shipped_configs
from sb3_ext.two_player.config import smoke_version
from sb3_ext.two_player.job import TwoPlayer, main
from tests.sb3_ext.two_player.helpers import difference, written


@pytest.fixture
def config(tmp_path):
    """A function that writes a tiny configuration with settings, and returns its path."""
    return partial(written, tmp_path / "tiny.yml")


def run(*arguments):
    return main([*map(str, arguments), "--no-progress"])


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def state_of(out):
    return HostAgentTrainer.load(out / "checkpoints").state_dict()


def last(out):
    return json.loads((Path(out) / "summary.json").read_text())["last"]


def test_a_run_leaves_everything_in_its_folder(tmp_path, config, capsys):
    out = tmp_path / "run"
    pytest.importorskip("tensorboard")
    given = config("logging.every_steps=2", "logging.tensorboard=true")
    assert run("--config", given, "--out", out, "--set", "seed=5") == 0
    printed = capsys.readouterr().out
    words = "host-agent", "random-agent", str(out)
    assert [word for word in words if word not in printed] == []
    assert read_config(out / "config.yml").seed == 5
    (about,) = lines(out / "runs.jsonl")
    assert (about["seed"], about["from"]) == (5, 0)
    assert {"command", "commit", "versions"} < about.keys()
    assert [each["step"] for each in lines(out / "metrics.jsonl")] == [2, 4, 6]
    assert "host/loss" in lines(out / "metrics.jsonl")[0]
    assert lines(out / "evaluations.jsonl") == [last(out)]
    assert last(out)["step"] == 6
    assert list((out / "tensorboard").iterdir())
    assert last(out)["values"].keys() == {"host-agent", "host-random", "random-agent"}
    for role in ("host", "agent"):
        assert (out / "best" / f"{role}.zip").is_file()
        best = str(out / "best" / role)
        pair = (best, "random") if role == "host" else ("random", best)
        sizes = {"max_num_points": 5, "max_value": 5}
        found = resgym.rho(*pair, games=20, seed=1, max_moves=20, **sizes).rho
        name = "host-random" if role == "host" else "random-agent"
        assert found == last(out)["values"][name]
        assert DDQN.load(out / "models" / f"{role}.zip", device="cpu")._n_updates == 6
    assert len(list_checkpoints(out / "checkpoints")) == 1


MEASURED = (
    "{callback: rho_evaluation, opponents: [random], every: {updates: 1}, games: 9, save_path: x}"
)


def test_steps_and_smoke_and_dry_run(tmp_path, config, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = config(*(f"roles.{role}.callbacks=[{MEASURED}]" for role in ("host", "agent")))
    assert run("--config", given, "--steps", "2", "--out", "a") == 0
    assert last("a")["step"] == 2
    assert len([*Path("a").glob("*/x/rho.json")]) == 2  # each role in a folder of its own
    assert run("--config", "small", "--smoke", "--set", "name=quick") == 0
    assert last("runs/quick")["step"] == 4
    capsys.readouterr()
    assert run("--config", "host_vs_choose_first", "--dry-run") == 0
    assert read_config(yaml.safe_load(capsys.readouterr().out)).training.steps == 5000
    assert sorted(each.name for each in Path().iterdir() if each.is_dir()) == ["a", "runs"]


class Crash(Exception):
    """No error that a command would report."""


def test_a_broken_off_run_is_resumed_as_if_it_had_not_been(tmp_path, config, monkeypatch):
    settings = ("checkpoint.every_steps=2", "logging.every_steps=1", "evaluation.every_steps=2")
    whole = tmp_path / "whole"
    broken = tmp_path / "broken"
    assert run("--config", config(*settings), "--out", whole) == 0

    original = HostAgentTrainer.step
    troubles = {4: "a signal", 5: "a crash"}

    def broken_off(self, players):
        if self.total_steps == max(troubles, default=None):
            if troubles.pop(self.total_steps) == "a crash":
                raise Crash
            signal.raise_signal(signal.SIGTERM)
        original(self, players)

    monkeypatch.setattr(HostAgentTrainer, "step", broken_off)
    with pytest.raises(Crash):
        run("--config", config(*settings), "--out", broken)
    with (broken / "metrics.jsonl").open("a") as file:
        file.write('{"step": 6, "ho')  # a line that the crash cut off
    newest = list_checkpoints(broken / "checkpoints")[0]
    newest.rename(f"{newest}.old")  # killed while it was replaced
    assert run("--resume", broken) == 128 + signal.SIGTERM  # after 5 steps
    assert run("--resume", broken) == 0
    assert difference(state_of(whole), state_of(broken)) == []
    assert lines(whole / "evaluations.jsonl") == lines(broken / "evaluations.jsonl")
    assert [each["step"] for each in lines(broken / "metrics.jsonl")] == [1, 2, 3, 4, 5, 6]
    first = lines(whole / "metrics.jsonl")
    second = lines(broken / "metrics.jsonl")
    assert [each["host/loss"] for each in first] == [each["host/loss"] for each in second]
    assert [each["from"] for each in lines(broken / "runs.jsonl")] == [0, 4, 5]


def test_resume_refuses_another_experiment(tmp_path, config, capsys):
    out = tmp_path / "run"
    assert run("--config", config(), "--steps", "2", "--out", out) == 0
    assert run("--resume", out, "--set", "roles.host.batch_size=4") == 2
    assert "another roles.host.batch_size: got 4; expected 8" in capsys.readouterr().err
    assert run("--resume", out, "--set", "training.steps=3", "--set", "logging.layers=true") == 0
    assert last(out)["step"] == 3
    assert run("--resume", out, "--steps", "5") == 0
    assert last(out)["step"] == 5
    capsys.readouterr()
    text = (out / "config.yml").read_text()
    (out / "config.yml").write_text(text.replace("gamma: 0.97", "gamma: 0.9", 1))  # by hand
    assert run("--resume", out) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "config.yml was changed" in line
    assert ".gamma: got 0.9; expected 0.97" in line


def test_init_from_starts_a_new_run_from_the_networks(tmp_path, config):
    assert run("--config", config(), "--steps", "3", "--out", tmp_path / "a") == 0
    still = config("roles.host.learning_rate=0.0", "roles.agent.learning_rate=0.0")
    arguments = ("--config", still, "--steps", "1", "--init-from", tmp_path / "a")
    assert run(*arguments, "--out", tmp_path / "b") == 0
    first, second = (last(tmp_path / name) for name in "ab")
    assert second["values"] == first["values"]
    assert second["step"] == 1


DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", shipped_configs())
def test_shipped_configurations_are_valid_and_come_back_equal(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("host.zip").touch()  # a model that somebody saved; no key or name is its path
    config = read_config(name)
    assert config.name == name
    for each in (config, smoke_version(config)):
        assert read_config(yaml.safe_load(yaml.safe_dump(each.to_dict()))) == each


def test_the_page_shows_every_key_and_commands_that_exist():
    text = (DOCS / "two_player.md").read_text()
    keys = dict(runpy.run_path(str(DOCS / "keys.py"))["key_rows"](TwoPlayer.Config))
    assert len(keys) > 10
    assert [key for key, meaning in keys.items() if not meaning] == []
    assert "```{keys} sb3_ext.two_player.job:TwoPlayer\n" in text
    commands = re.findall(r"^python -m sb3_ext\.two_player (.+)$", text, re.MULTILINE)
    assert len(commands) >= 3
    for each in commands:
        parser_of(TwoPlayer).parse_args(each.split())
