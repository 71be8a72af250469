"""Each command is tuned for real, on as little as it takes, and trains with the best file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from sb3_ext.attack import attack
from sb3_ext.studies.teach import cli as teach
from sb3_ext.training import train
from sb3_ext.tuning import cli
from sb3_ext.two_player import job as two_player
from tests.sb3_ext.tuning.parabola import study

HOST = "resgym/HironakaHost-v0"
RHO = {"opponents": ["random", "choose_first"], "games": 20, "seed": 1}
STUDIES: dict[str, dict[str, Any]] = {
    "train": {
        "target": {
            "command": "train",
            "algo": "ddqn",
            "env": HOST,
            "config": "ddqn",
            "measure": {**RHO, "every_updates": 20},
        },
        "settings": {
            "n_timesteps": 1600,
            "n_envs": 16,
            "learning_starts": 320,
            "batch_size": 16,
            "policy_kwargs.net_arch": [8],
        },
        "search": {"learning_rate.init": {"low": 1e-4, "high": 1e-2, "log": True}},
        "direction": "maximize",
    },
    "two_player": {
        "target": {"command": "two_player", "config": "small", "role": "agent"},
        "settings": {
            "training.steps": 6,
            "evaluation.every_steps": 2,
            "evaluation.games": 20,
            "evaluation.action_games": 5,
        },
        "search": {"roles.agent.net_arch": {"choices": [[8], [16, 8]]}},
    },
    "attack": {
        "target": {"command": "attack", "config": "points5", "player": "zeillinger"},
        "settings": {
            "seeds": [0, 1],
            "updates": 4,
            "every": 2,
            "learner.n_envs": 16,
            "learner.learning_starts": 64,
            "learner.batch_size": 16,
            "lookahead": 0,
            "validation.games": 20,
            "test.games": 20,
            "exact": None,
        },
        "search": {"learner.n_steps": {"low": 1, "high": 4}},
    },
    "teach": {
        "target": {"command": "teach", "config": "taught/host.yml", "measure": "accuracy"},
        "settings": {
            "rounds": None,
            "data.config": "small",
            "data.positions": 400,
            "data.held_out": 0.2,
            "algorithm.file": "taught/ddqn_small.yml",
            "train.updates": 6,
            "train.evaluation_updates": 2,
            "train.batch_size": 16,
            "measure.games": 10,
            "measure.larger": 5,
            "measure.brieskorn_pham": 1,
        },
        "search": {"train.temperature": {"low": 0.05, "high": 0.5}},
        "direction": "maximize",
    },
}


def tune(folder: Path, command: str, **changes: Any) -> list[optuna.trial.FrozenTrial]:
    path = folder / "study.yml"
    path.write_text(yaml.safe_dump(study(**STUDIES[command], trials=2, **changes)))
    assert cli.main([str(path), "--folder", str(folder), "--no-progress"]) == 0
    journal = JournalStorage(JournalFileBackend(str(folder / "journal.log")))
    return optuna.load_study(study_name="parabola", storage=journal).trials


@pytest.mark.parametrize(
    ("command", "steps"),
    [
        ("train", [*range(20, 161, 20)]),  # (1600 - 320) / 16 blocks of two updates
        ("two_player", [2, 4, 6]),
        ("attack", [0, 2, 4, 5, 7, 9]),
        pytest.param("teach", [2, 4, 6], marks=pytest.mark.long),
    ],
)
def test_a_command_is_tuned_and_trains_with_the_best(command, steps, tmp_path, capfd, monkeypatch):
    trials = tune(tmp_path, command)
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 2, [
        t.user_attrs for t in trials
    ]
    for trial in trials:
        assert list(trial.intermediate_values) == steps
        assert trial.value == pytest.approx(list(trial.intermediate_values.values())[-1])
    chosen = max if STUDIES[command].get("direction") == "maximize" else min
    best = chosen(trials, key=lambda trial: trial.value)
    text = (tmp_path / "best.yml").read_text()
    assert f"Trial {best.number} of the study parabola" in text
    values = yaml.safe_load(text)
    values = values[HOST] if command == "train" else values
    (name,), searched = STUDIES[command]["search"], best.params
    for part in name.split("."):
        values = values[part]
    assert values == (yaml.safe_load(searched[name]) if command == "two_player" else searched[name])

    monkeypatch.chdir(tmp_path)
    out = str(tmp_path / "out")
    run, arguments = {
        "train": (
            train.main,
            [
                "--algo",
                "ddqn",
                "--env",
                HOST,
                "--conf-file",
                "best.yml",
                "--eval-freq",
                "-1",
                "-f",
                out,
            ],
        ),
        "two_player": (two_player.main, ["--config", "best.yml", "--out", out]),
        "attack": (attack.main, ["zeillinger", "--budget", "best.yml", "--out", out]),
        "teach": (teach.main, ["run", "--config", "best.yml", "--out", out, "--workers", "1"]),
    }[command]
    assert run(arguments) == 0, capfd.readouterr().err


def test_a_taught_player_is_measured_by_games_too(tmp_path):
    target = {**STUDIES["teach"]["target"], "measure": {**RHO, "opponents": ["random"]}}
    changed = {**STUDIES["teach"], "target": target}
    path = tmp_path / "study.yml"
    path.write_text(yaml.safe_dump(study(**changed, trials=1)))
    assert cli.main([str(path), "--folder", str(tmp_path), "--no-progress"]) == 0
    journal = JournalStorage(JournalFileBackend(str(tmp_path / "journal.log")))
    (trial,) = optuna.load_study(study_name="parabola", storage=journal).trials
    assert 0 <= trial.value < 1  # a host of a few updates may finish no game
    assert len(trial.intermediate_values) == 3


@pytest.mark.parametrize("command", STUDIES)
def test_a_training_is_left_at_once_when_it_is_pruned(command, tmp_path):
    """The bound cannot be reached, so the first measurement that may prune ends the trial."""
    bound = {"name": "threshold", "lower": 2.0}
    path = tmp_path / "study.yml"
    path.write_text(yaml.safe_dump(study(**STUDIES[command], trials=1, pruner=bound)))
    assert cli.main([str(path), "--folder", str(tmp_path), "--no-progress"]) == 1
    journal = JournalStorage(JournalFileBackend(str(tmp_path / "journal.log")))
    (trial,) = optuna.load_study(study_name="parabola", storage=journal).trials
    assert trial.state is TrialState.PRUNED
    assert len(trial.intermediate_values) == 1
