"""The commands train and run, and the files that come with them."""

from __future__ import annotations

import json
import os
import shutil
import signal

import pytest
import torch
import yaml

from sb3_ext.callbacks.rho_evaluation import player_of
from sb3_ext.config.reading import find_config
from sb3_ext.ddqn import DDQN
from sb3_ext.studies.teach import measures, train
from sb3_ext.studies.teach.cli import main
from sb3_ext.studies.teach.generate import Plan, generate, prepared
from sb3_ext.studies.teach.measures import (
    host_summary,
    host_test,
    measure_host,
    singularity_depths,
    singularity_summary,
)
from sb3_ext.studies.teach.settings import read_settings
from sb3_ext.studies.teach.train import ENVIRONMENTS, build_model, read_hyperparameters
from sb3_ext.training.loading import load_player, load_policy
from tests.sb3_ext.studies.teach.labelled import QUICK, SMALL, SmallData, make_model


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Command-line options for a quick training on small data."""
    monkeypatch.setattr(train, "load_dataset", lambda path: SmallData())
    algorithm = {"policy": "HostPolicy", "n_timesteps": 1000, "policy_kwargs": SMALL}
    algorithm["env_kwargs"] = {"reward": "step"}
    file = tmp_path / "algorithm.yml"
    file.write_text(yaml.safe_dump({"default": algorithm}))
    config = tmp_path / "settings.yml"
    config.write_text(yaml.safe_dump({"train": QUICK}))
    return [
        "train", "--data", "nowhere", "--out", str(tmp_path / "run"), "--algo-config", str(file),
        "--config", str(config), "--no-progress",
    ]  # fmt: skip


def test_train_leaves_a_player_and_a_record(small, tmp_path, capsys):
    assert main([*small, "--json", "--seed", "3"]) == 0
    printed = json.loads(capsys.readouterr().out)
    run = tmp_path / "run"
    assert json.loads((run / "held_out.json").read_text()) == printed
    assert printed["updates"] == QUICK["updates"]
    assert yaml.safe_load((run / "config.yml").read_text())["train"]["seed"] == 3
    assert json.loads((run / "provenance.json").read_text())["seed"] == 3
    assert [e["update"] for e in json.loads((run / "history.json").read_text())] == [20, 40, 60]
    assert DDQN.load(run / "model.zip", device="cpu").gamma == 0.99
    assert load_player(run, "host").role == "host"

    assert main(small) == 2
    assert "holds a run already; --resume goes on with it" in capsys.readouterr().err
    assert main([*small, "--resume"]) == 2  # another seed
    assert "teaching/settings: seed was 3, now it is 0" in capsys.readouterr().err
    assert main([*small, "--resume", "--seed", "3"]) == 0
    assert "optimal choices on" in capsys.readouterr().out


def test_a_signal_stops_with_a_checkpoint_and_resume_goes_on(small, tmp_path, capsys, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    one_update = train.Pretraining._one_update

    def interrupted(self):
        one_update(self)
        if self.update == 7:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(train.Pretraining, "_one_update", interrupted)
    assert main(small) == 0
    assert "stopped; --resume goes on" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) == before
    assert [p.name for p in (tmp_path / "run").glob("checkpoint-*")] == ["checkpoint-000000000007"]
    assert not (tmp_path / "run" / "model.zip").exists()
    monkeypatch.setattr(train.Pretraining, "_one_update", one_update)
    assert main([*small, "--resume"]) == 0
    assert (tmp_path / "run" / "model.zip").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--set", "updates=0"], "train.updates must be at least 1, got 0"),
        (["--set", "temperature=0"], "train.temperature must be above 0"),
        (["--set", "learning_rate=1e-3"], "1e-3"),
        (["--set", "learning_rate={schedule: constant, value: 1.0, unit: transitions}"], "unit"),
        (["--set", "validation_fraction=0.0"], "validation_fraction must be above 0"),
        (["--set", "augment=3"], "train.augment must be true or false, got 3"),
        (["--set", "updates"], "--set must have the form dotted.key=value, got 'updates'"),
        (["--set", "update=3"], "unknown key of train 'update'; did you mean 'updates'"),
        (["--algo-config", "nothing.yml"], "algo-config: there is no file 'nothing.yml'"),
        (["--resume", "--init-from", "runs/host"], "give only --resume"),
        (["--threads", "0"], "threads must be between 1 and 1024, got 0"),
    ],
)
def test_bad_input_is_one_line(small, tmp_path, capsys, more, message):
    assert main([*small, *more]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("teach train: ")
    assert message in lines[0]
    assert not (tmp_path / "run").exists()


def test_a_dataset_that_is_not_there_is_one_line(tmp_path, capsys):
    assert main(["train", "--data", str(tmp_path / "no"), "--out", str(tmp_path / "run")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("seat", ["host", "agent"])
def test_shipped_files_make_a_model(seat):
    settings = read_settings(train.SETTINGS)
    assert settings.value_weight > 0
    hyperparameters = read_hyperparameters(train.ALGO_CONFIG, ENVIRONMENTS[seat])
    model, reward = build_model(ENVIRONMENTS[seat], hyperparameters, 3, seed=0)
    assert reward == "step"
    assert sum(p.numel() for p in model.q_net.parameters()) * 4 < 800_000  # bytes


def test_measures_of_a_host(monkeypatch):
    data, model = SmallData(), make_model()
    plan = Plan.read({"config": "small", "positions": 100})
    monkeypatch.setattr(measures, "DRAWN_BATCHES", 2)
    test = host_test(data.split("held_out"), plan, brieskorn_pham=3, label_budget=1000)
    results = measure_host(player_of(model), test, larger=5, games=20, max_depth=5)
    drawn = results["held_out"]["as_drawn"]
    assert drawn["family"] == "uniform"
    assert 0 <= drawn["optimal"] <= drawn["positions"] > 100
    singularities = singularity_depths(player_of(model), max_depth=5)
    assert len(singularities) == 16
    assert singularities["E8"]["least_depth"] == 7
    row = results["brieskorn_pham"]
    assert row["positions"] == 4
    assert row["not_proved"] == 0
    assert 0 <= row["optimal"] <= row["within_one"] <= 4 - row["not_finished"]
    assert set(results["rho"]) == {"choose_first", "choose_last", "random"}
    assert "points_6_to_8" not in results  # there are none in these data
    assert "singularities in the least depth" in singularity_summary(singularities)
    assert "rho against choose_first, 20 points" in host_summary(results)
    nothing = measure_host(
        player_of(model), test._replace(powers=[]), larger=0, games=0, max_depth=5
    )
    assert set(nothing) == {"held_out"}


@pytest.mark.long
def test_from_nothing_to_a_taught_host(tmp_path, capsys):
    sections = {
        "data": {"config": "small", "positions": 600, "held_out": 0.1},
        "algorithm": {"file": "taught/ddqn.yml"},
        "train": {**QUICK, "updates": 40},
        "measure": {"brieskorn_pham": 3, "label_budget": 1000, "games": 20, "max_depth": 5},
    }
    config = tmp_path / "config.yml"
    config.write_text(yaml.safe_dump(sections))
    out = tmp_path / "out"
    command = ["run", "--out", str(out), "--config", str(config), "--workers", "1"]
    assert main([*command, "--no-progress"]) == 0
    assert "rho against choose_first, 20 points" in capsys.readouterr().out
    results = json.loads((out / "results.json").read_text())
    assert results["held_out"]["positions"] > 30
    assert set(results["seconds"]) == {"generate", "train", "measure"}
    config.write_text(yaml.safe_dump({**sections, "tran": {}}))
    assert main(command) == 2
    assert "unknown key 'tran'; did you mean 'train'" in capsys.readouterr().err


def test_rounds_teach_what_the_host_before_meets(tmp_path):
    walk = yaml.safe_load(find_config("teach/walk.yml").read_text())
    (tmp_path / "walk.yml").write_text(yaml.safe_dump({**walk, "budget": 200} | {"families": [
        {"name": "walked", "kind": "uniform", "points": [4, 5], "max_value": [4],
         "play": {"hosts": ["student"], "moves": [0, 9]}},
    ]}))  # fmt: skip
    sections = {
        "data": {"config": "small", "positions": 200, "held_out": 0.1},
        "algorithm": {"file": "taught/ddqn.yml"},
        "rounds": {"count": 2, "config": str(tmp_path / "walk.yml"), "positions": 150},
        "train": {**QUICK, "updates": 20},
        "measure": {"larger": 0, "brieskorn_pham": 0, "label_budget": 1, "games": 0},
    }
    config = tmp_path / "config.yml"
    config.write_text(yaml.safe_dump(sections))
    runs = [tmp_path / name for name in ("whole", "parts")]
    for out in runs:
        assert main(["run", "--out", str(out), "--config", str(config), "--no-progress"]) == 0
        if out == runs[1]:  # as if it had been killed in the last round
            for lost in (out / "taught", out / "data-2"):
                shutil.rmtree(lost)
            assert main(["run", "--out", str(out), "--config", str(config), "--no-progress"]) == 0
    weights = [load_policy(out / "taught").q_net.state_dict() for out in runs]
    assert all(torch.equal(weight, weights[1][name]) for name, weight in weights[0].items())
    plans = [json.loads((out / "data-2" / "plan.json").read_text()) for out in runs]
    assert plans[0] == plans[1]
    first = json.loads((runs[0] / "data-1" / "plan.json").read_text())
    assert plans[0]["student"] != first["student"]  # a host that has learned more
    assert "student" in first["config"]["families"][0]["play"]["hosts"]
    record = yaml.safe_load((runs[0] / "taught" / "config.yml").read_text())
    assert record["train"]["updates"] == 20


def test_from_nothing_to_a_taught_agent(tmp_path, capsys):
    games = yaml.safe_load(find_config("teach/agent_games.yml").read_text())
    (family, *_) = games["families"]
    family |= {"points": [4, 5], "play": {**family["play"], "hosts": ["zeillinger", "random"]}}
    sections = {
        "data": {"config": "small", "positions": 200, "held_out": 0.1, "seat": "agent"},
        "algorithm": {"file": "taught/ddqn.yml"},
        "rounds": {"count": 1, "config": {**games, "families": [family]}, "positions": 150},
        "train": {**QUICK, "updates": 20},
        "measure": {"games": 3},
    }
    config, out = tmp_path / "config.yml", tmp_path / "out"
    config.write_text(yaml.safe_dump(sections))
    assert main(["run", "--out", str(out), "--config", str(config), "--no-progress"]) == 0
    assert "moves for which hosts are held up, 20 points" in capsys.readouterr().out
    results = json.loads((out / "results.json").read_text())
    assert set(results) == {"agent", "held_out", "seconds"}
    assert set(results["agent"]) == set(measures.HELD_UP)
    assert load_player(out / "taught", "agent").role == "agent"
    plan = json.loads((out / "data-1" / "plan.json").read_text())
    assert (plan["seat"], len(plan["student"])) == ("agent", 16)


@pytest.mark.parametrize(
    ("section", "key", "value", "message"),
    [
        ("rounds", "count", -1, "rounds.count must be at least 0, got -1"),
        ("rounds", "config", "nothing", "there is no file 'nothing'"),
        ("rounds", "config", "default", "rounds.config: no family plays with the host student"),
        ("rounds", "config", "agent_games", "no family plays with the host student"),
        ("data", "config", "walk", "data.student: is missing"),
        ("data", "seat", "agent", "rounds.config: no family plays with the agent student"),
        ("rounds", "positions", 0, "rounds.positions must be at least 1, got 0"),
        ("data", "config", None, "config must be a path, a name, a dictionary or of"),
        ("data", "seed", "abc", "data.seed must be a number, got 'abc'"),
        ("data", "held_out", "1e-1", "data.held_out must be a number, got the string '1e-1'"),
        ("data", "bogus", 1, "unknown key of data 'bogus'"),
        ("algorithm", "file", ..., "algorithm.file is missing"),
        ("measure", "games", "many", "measure.games must be a number, got 'many'"),
        ("measure", "max_depth", 0, "measure.max_depth must be at least 1, got 0"),
    ],
)
def test_a_bad_section_is_one_line_before_anything_is_made(
    tmp_path, capsys, section, key, value, message
):
    sections = yaml.safe_load(find_config("taught/host.yml").read_text())
    if value is ...:
        del sections[section][key]
    else:
        sections[section][key] = value
    config = tmp_path / "config.yml"
    config.write_text(yaml.safe_dump(sections))
    assert main(["run", "--out", str(tmp_path / "out"), "--config", str(config)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert str(config) in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_the_folder_is_one_line(small, tmp_path, capsys):
    file = tmp_path / "run"
    file.write_text("kept")
    for command in (small, ["generate", "--config", "small", "--out", str(file)]):
        assert main(command) == 2
        assert f"out: must be a folder, {file} is a file\n" in capsys.readouterr().err
    assert file.read_text() == "kept"


@pytest.mark.parametrize("command", ["run", "robust"])
def test_a_dataset_of_other_settings_is_refused(command, tmp_path, capsys):
    """The folder's data are not taken for those that were asked for."""
    file = {"run": "taught/host.yml", "robust": "taught/robust.yml"}[command]
    sections = yaml.safe_load(find_config(file).read_text())
    config = tmp_path / "config.yml"
    sections["data"] |= {"config": "small", "positions": 200}
    config.write_text(yaml.safe_dump(sections))
    plan = Plan.read({**sections["data"], "positions": 150})
    out = tmp_path / "out"
    generate(plan, out / "data")
    kept = {path: path.read_bytes() for path in (out / "data").iterdir()}
    assert main([command, "--out", str(out), "--config", str(config), "--no-progress"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "holds a dataset with another positions" in error
    assert {path: path.read_bytes() for path in (out / "data").iterdir()} == kept
    assert prepared(plan, out / "data").manifest["plan"]["positions"] == 150
