"""Files of studies: what is refused, in one line, and what a range or choice suggests."""

import optuna
import pytest
import yaml

from sb3_ext.tune import tune
from sb3_ext.tune.tune import StudyConfig
from tests.sb3_ext.tune.parabola import study

ATTACK = {"command": "attack", "config": "points5", "player": "zeillinger"}
TRAIN = {"command": "train", "algo": "ddqn", "env": "resgym/HironakaHost-v0", "config": "ddqn"}
TEACH = {"command": "teach", "config": "small"}


@pytest.mark.parametrize("name", StudyConfig.shipped())
def test_shipped_studies_fit_their_commands(name, capsys):
    assert tune.main([name, "--dry-run"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["name"] == name


def searched(key):
    return {"search": {key: {"low": 1, "high": 2}}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trial": 3}, "unknown key 'trial'; did you mean 'trials'"),
        ({"search": {}}, "search must be at least 1 long"),
        ({"search": {"x": {"low": 2, "high": 1}}}, "search.x: "),
        ({"search": {"x": {"low": 0, "hihg": 1}}}, "'hihg'"),
        ({"settings": {"x": 1}}, "settings: x is a key of search, too"),
        ({"sampler": {"name": "tp"}}, "sampler: unknown sampler 'tp'; did you mean 'tpe'"),
        ({"pruner": {"name": "median", "warm": 1}}, "pruner: unknown key 'warm'"),
        ({"target": {"command": "trian", "config": ""}}, "target.command: unknown command 'trian'"),
        ({"target": TEACH, **searched("update")}, "unknown key 'update'; did you mean 'updates'"),
        ({"target": TRAIN, **searched("gama")}, "unknown key 'gama'; did you mean 'gamma'"),
        ({"target": {**ATTACK, "player": "--trust"}, **searched("updates")}, "player"),
    ],
)
def test_bad_files_are_one_line_and_leave_nothing(changes, message, tmp_path, capsys):
    path = tmp_path / "study.yml"
    path.write_text(yaml.safe_dump(study(**changes)))
    assert tune.main([str(path), "--out", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tune: ")
    assert message in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--trials", "0"], "trials must be at least 1, got 0"),
        (["--storage", "nonsense://x"], "storage: nonsense://x"),
        (["--storage", "sqlite:////no/such/folder/study.db"], "storage: sqlite"),
        (["--set", "name=../up"], "name must"),
    ],
)
def test_bad_options_are_one_line(more, message, tmp_path, capsys):
    path = tmp_path / "study.yml"
    path.write_text(yaml.safe_dump(study()))
    assert tune.main([str(path), "--out", str(tmp_path / "out"), *more]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_ranges_and_choices_give_what_they_say():
    lists = [[1, 2], [3], None, True, "word", 0.5]
    search = {
        "whole": {"low": 2, "high": 8, "step": 3},
        "real": {"low": 0.5, "high": 1, "step": 0.25},
        "log": {"low": 1.0e-4, "high": 1.0e-2, "log": True},
        "lists": {"choices": lists},
    }
    read = StudyConfig.read(study(search=search))
    trials = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    found = {name: [] for name in search}
    for _ in range(60):
        trial = trials.ask()
        given = read.suggest(trial)
        trials.tell(trial, 0.0)
        assert read.suggest(trials.trials[-1]) == given  # a finished trial gives its values again
        for name, value in given.items():
            found[name].append(value)
    assert set(found["whole"]) == {2, 5, 8}
    assert all(isinstance(value, int) for value in found["whole"])
    assert set(found["real"]) == {0.5, 0.75, 1.0}
    assert all(1e-4 <= value <= 1e-2 for value in found["log"])
    assert sum(value < 1e-3 for value in found["log"]) > 10  # half of them; 5 of 60 if not log
    assert all(value in found["lists"] for value in lists)
