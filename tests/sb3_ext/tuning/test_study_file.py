"""Files of studies: what is refused, in one line, and what a range or choice suggests."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
import yaml

from sb3_ext.config.sections import ConfigError, read_section
from sb3_ext.tuning import cli
from sb3_ext.tuning.study_file import Choices, Range, StudyConfig
from tests.sb3_ext.tuning.parabola import study

TWO_PLAYER = {"command": "two_player", "config": "small", "role": "host"}
RATE = {"roles.host.learning_rate.init": {"low": 1e-4, "high": 1e-2}}
TRAIN = {
    "command": "train",
    "algo": "ddqn",
    "env": "resgym/HironakaHost-v0",
    "config": "ddqn",
    "measure": {"opponents": ["random"], "games": 5, "seed": 1, "every_updates": 5},
}
GAMMA = {"gamma": {"low": 0.9, "high": 0.99}}
ATTACK = {"command": "attack", "config": "points5", "player": "zeillinger"}
STEPS = {"learner.n_steps": {"low": 1, "high": 3}}
TEACH = {"command": "teach", "config": "taught/host.yml", "measure": "accuracy"}


@pytest.mark.parametrize("name", StudyConfig.shipped())
def test_shipped_studies_are_valid(name):
    assert StudyConfig.read(name).name == name


def test_there_is_a_study_for_each_command():
    commands = {StudyConfig.read(name).target.command for name in StudyConfig.shipped()}
    assert commands == {"attack", "teach", "train", "two_player"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trial": 3}, "unknown key 'trial'; did you mean 'trials'"),
        ({"trials": 0}, "trials must be at least 1, got 0"),
        ({"direction": "up"}, "direction must be 'maximize' or 'minimize', got 'up'"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"search": {}}, "search must be a mapping from dotted keys"),
        ({"search": {"x": 3}}, "search.x must be a mapping, got 3"),
        ({"search": {"x": {"low": 2, "high": 1}}}, "search.x.high must be above low"),
        ({"search": {"x": {"low": "1e-3", "high": 1}}}, "search.x.low"),
        ({"search": {"x": {"low": 0, "high": 1, "log": True}}}, "search.x.log: true needs low"),
        ({"search": {"x": {"low": 0, "high": 1, "step": 2}}}, "search.x.step must be above 0"),
        ({"search": {"x": {"low": 0, "hihg": 1}}}, "'hihg'; did you mean 'high'"),
        ({"search": {"x": {"choices": [1]}}}, "search.x.choices must be at least 2 long"),
        ({"search": {"x": {"choices": [1, 1]}}}, "search.x.choices must differ"),
        ({"search": {"z": {"low": 0, "high": 1}}}, "unknown keys in ['kind', 'x', 'z']"),
        ({"settings": {"x": 1}}, "settings: x is a key of search, too"),
        ({"settings": {"a.b": 1}}, "settings: unknown key 'a'; choices: kind, x"),
        ({"sampler": {"name": "tp"}}, "sampler: unknown sampler 'tp'; did you mean 'tpe'"),
        ({"sampler": {"name": "tpe", "seed": 1}}, "sampler.seed: is the key seed of the study"),
        ({"sampler": {"name": "tpe", "n_startup_trial": 1}}, "did you mean 'n_startup_trials'"),
        ({"pruner": "median"}, "pruner: must be a mapping with the key name"),
        ({"pruner": {"name": "percentile"}}, "pruner: percentile: missing"),
        ({"target": {"config": "small"}}, "target must be a mapping with the key command"),
        ({"target": {"command": "trian"}}, "target.command: unknown command 'trian'; did you mean"),
        ({"target": {**TWO_PLAYER, "rolle": 1}}, "unknown key of target 'rolle'"),
        ({"target": {**TWO_PLAYER, "config": "big"}, "search": RATE}, "there is no file 'big'"),
        ({"target": {**TWO_PLAYER, "role": "hots"}, "search": RATE}, "target.role: unknown"),
        (
            {"target": TWO_PLAYER, "search": {"roles.host.gama": {"low": 0, "high": 1}}},
            "unknown key of roles.host 'gama'; did you mean 'gamma'",
        ),
        ({"target": {**TRAIN, "algo": "ddq"}, "search": GAMMA}, "target.algo: unknown algorithm"),
        (
            {"target": TRAIN, "search": {"gama": {"low": 0, "high": 1}}},
            "unknown key 'gama'; did you mean 'gamma'",
        ),
        (
            {
                "target": {**TRAIN, "measure": {**TRAIN["measure"], "opponents": ["zeillinger"]}},
                "search": GAMMA,
            },
            "target.measure.opponents: ",
        ),
        (
            {"target": {**TRAIN, "env": "resgym/No-v0"}, "search": GAMMA},
            "target.env or env_kwargs: ",
        ),
        ({"target": {**ATTACK, "player": "nobody"}, "search": STEPS}, "nobody"),
        (
            {"target": TEACH, "search": {"train.batch_size": {"low": 1, "high": 2}}},
            "rounds must be null",
        ),
        ({"target": {**TEACH, "measure": "rho"}}, "target.measure must be accuracy or a mapping"),
        (
            {"target": {**TEACH, "measure": {"opponents": ["random"], "game": 3, "seed": 1}}},
            "unknown key of target.measure 'game'; did you mean 'games'",
        ),
    ],
)
def test_bad_files_are_one_line_that_names_the_field(changes, message, tmp_path, capsys):
    path = tmp_path / "study.yml"
    path.write_text(yaml.safe_dump(study(**changes)))
    assert cli.main([str(path), "--folder", str(tmp_path / "out")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"tune: {path}: ")
    assert message in lines[0]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--workers", "0"], "--workers must be a whole number of at least 1, got 0"),
        (["--heartbeat", "0"], "--heartbeat must be a whole number of at least 1, got 0"),
        (["--trials", "0"], "--trials must be a whole number of at least 1, got 0"),
        (["--set", "x"], "--set must have the form dotted.key=value, got 'x'"),
        (["--set", "y=1"], "unknown keys in ['kind', 'x', 'y']"),
        (["--storage", "nonsense://x"], "storage: must be a journal file or a URL"),
        (["--storage", "sqlite:////no/such/folder/study.db"], "storage: must be a journal file"),
        (["--storage", "/dev/null/journal"], "storage: must be a journal file"),
        (["--storage", ""], "storage: must be a journal file"),
        (["--name", ""], "name must"),
        (["--name", "../up"], "name must"),
    ],
)
def test_bad_options_are_one_line(more, message, tmp_path, capsys):
    path = tmp_path / "study.yml"
    path.write_text(yaml.safe_dump(study()))
    assert cli.main([str(path), "--folder", str(tmp_path / "out"), *more]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("tune: ")
    assert message in lines[0]


def test_ranges_and_choices_give_what_they_say():
    lists = [[1, 2], [3], None, True, "word", 0.5]
    read = {
        "whole": read_section(Range, {"low": 2, "high": 8, "step": 3}),
        "real": read_section(Range, {"low": 0.5, "high": 1, "step": 0.25}),
        "log": read_section(Range, {"low": 1.0e-4, "high": 1.0e-2, "log": True}),
        "lists": read_section(Choices, {"choices": lists}),
    }
    trials = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    found: dict[str, list[Any]] = {name: [] for name in read}
    for _ in range(60):
        trial = trials.ask()
        for name, each in read.items():
            found[name].append(each.suggest(trial, name))
        trials.tell(trial, 0.0)
        finished = trials.trials[-1]  # a finished trial gives its values again
        assert [each.suggest(finished, name) for name, each in read.items()] == [
            values[-1] for values in found.values()
        ]
    assert set(found["whole"]) == {2, 5, 8}
    assert all(isinstance(value, int) for value in found["whole"])
    assert set(found["real"]) == {0.5, 0.75, 1.0}
    assert all(1e-4 <= value <= 1e-2 for value in found["log"])
    assert sum(value < 1e-3 for value in found["log"]) > 10  # half of them; 5 of 60 if not log
    assert all(value in found["lists"] for value in lists)


def test_a_file_that_is_not_there_names_those_that_are(capsys):
    with pytest.raises(ConfigError, match=r"study: there is no file 'nothing'.*two_player"):
        StudyConfig.read("nothing")
