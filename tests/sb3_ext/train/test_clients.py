"""rl_zoo3's and stable-baselines3's own programs on our environments, files and models."""

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
import rl_zoo3.enjoy
import rl_zoo3.train
import torch
from stable_baselines3 import PPO

from resgym import cli
from resgym.benchmark import load, tasks
from resgym.scoreboard import read_rows
from sb3_ext.config.sections import find_config
from sb3_ext.networks.extractors import PointSetExtractor
from sb3_ext.train.train import main as train_main

HOST, AGENT = "resgym/HironakaHost-v0", "resgym/HironakaAgent-v0"
FEW = {
    "dqn": ["n_envs:2", "learning_starts:32", "batch_size:16", "buffer_size:500"],
    "ppo": ["n_envs:2", "n_steps:16", "batch_size:16"],
}
# What rl_zoo3 does not take from the file for its evaluations, so that the command has to say it.
EVALUATION = {
    HOST: ["opponent:'choose_first'", "reward:'step'"],
    AGENT: ["opponent:'zeillinger'", "reward:'step'", "invalid_action:'penalty'"],
}


@pytest.mark.parametrize(("algorithm", "env_id"), [("dqn", AGENT), ("ppo", HOST)])
def test_rl_zoo3_itself_trains_with_the_files_made_for_it(
    algorithm, env_id, tmp_path, monkeypatch, capsys
):
    config = find_config(f"rl_zoo3/{algorithm}", shipped=True)
    common = ["--algo", algorithm, "--env", env_id, "-f", str(tmp_path)]
    arguments = ["train", *common, "--gym-packages", "resgym", "--conf-file", str(config)]
    arguments += ["-n", "96", "--eval-freq", "48", "--eval-episodes", "2", "--seed", "1"]
    arguments += ["--verbose", "0", "-params", *FEW[algorithm]]
    arguments += ["--eval-env-kwargs", *EVALUATION[env_id]]
    monkeypatch.setattr(sys, "argv", arguments)
    rl_zoo3.train.train()
    (folder,) = (tmp_path / algorithm).iterdir()
    returns = np.load(folder / "evaluations.npz")["results"]
    assert returns.size >= 2
    assert abs(returns).max() > 1  # a step costs or gives 1
    saved = (folder / env_id.replace("/", "-") / "config.yml").read_text()
    assert "opponent" in saved
    monkeypatch.setattr(sys, "argv", ["enjoy", *common, "--no-render", "-n", "300"])
    rl_zoo3.enjoy.enjoy()
    assert "Mean episode length" in capsys.readouterr().out
    if env_id == HOST:  # a row of the scoreboard, from the folder as it is
        few = load("worst-20").select(torch.arange(4))
        monkeypatch.setattr(tasks, "load", lambda part: few)
        file, name = tmp_path / "rows.json", "ppo, seed 1"
        model = [str(folder / "resgym-HironakaHost-v0.zip"), "--trust"]
        added = ["scoreboard", "add", *model, "--name", name, "--file", str(file)]
        assert cli.main(added) == cli.main(["scoreboard", "check", str(file), "--trust"]) == 0
        (row,) = read_rows(file)
        assert (row.name, row.task, len(row.counts), row.reproduced) == (name, "worst-20", 4, True)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # what rl_zoo3 leaves open
def test_rl_zoo3_itself_takes_our_file_with_the_class_of_the_extractor(tmp_path, monkeypatch):
    """The command of configs/README.md, made short; without the class it is an error."""
    page = (Path(__file__).resolve().parents[3] / "configs/README.md").read_text()
    command = r"^python -m rl_zoo3.train ([^`]*--conf-file configs/ppo.yml[^`]*)^```"
    (words,) = re.findall(command, page, re.MULTILINE)
    given = shlex.split(words.replace("\\\n", ""))
    given[given.index("configs/ppo.yml")] = str(find_config("ppo", shipped=True))
    given[given.index("-params") + 1 : given.index("-params") + 1] = FEW["ppo"]
    given += ["-f", str(tmp_path), "-n", "32", "--eval-freq", "-1", "--verbose", "0"]
    monkeypatch.setattr(sys, "argv", ["train", *given])
    rl_zoo3.train.train()
    model = PPO.load(next(tmp_path.glob("ppo/*/resgym-HironakaHost-v0.zip")))
    assert isinstance(model.policy.features_extractor, PointSetExtractor)
    without = [word for word in given if not word.startswith("policy_kwargs:")]
    monkeypatch.setattr(sys, "argv", ["train", *without])
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'extractor'"):
        rl_zoo3.train.train()


def test_an_evaluation_has_the_training_s_reward_and_opponent(tmp_path):
    """Games of one move at -1 each, unless the evaluation is told otherwise."""
    arguments = ["--algo", "ppo", "--env", HOST, "-n", "160", "-f", str(tmp_path), "--seed", "1"]
    arguments += ["--eval-freq", "80", "--eval-episodes", "5", "--n-eval-envs", "1"]
    own = "env_kwargs:{opponent: choose_first, reward: step, max_episode_steps: 1}"
    arguments += ["--verbose", "0", "-params", "n_envs:4", "n_steps:8", "batch_size:16", own]
    assert train_main(arguments) == 0
    assert train_main([*arguments, "--eval-env-kwargs", "reward:survival"]) == 0
    first, second = (
        np.load(tmp_path / "ppo" / f"resgym-HironakaHost-v0_{k}" / "evaluations.npz")
        for k in (1, 2)
    )
    assert first["results"].max() == first["results"].min() == -1
    assert first["ep_lengths"].max() == 1
    assert second["ep_lengths"].max() > 1  # told otherwise: nothing of the training's
