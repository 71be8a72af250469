"""rl_zoo3's commands, and its own programs, with our algorithms, environments and files."""

import argparse
import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
import rl_zoo3.enjoy
import rl_zoo3.train
import torch
import yaml
from moviepy import VideoFileClip
from stable_baselines3 import DQN, PPO

from resgym import cli
from resgym.benchmark import load, tasks
from resgym.pictures.games import HEIGHT, WIDTH
from resgym.scoreboard import read_rows
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.config.sections import find_config
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.algorithms import ObservedMaskPPO
from sb3_ext.networks.extractors import PointSetExtractor
from sb3_ext.runs.driver import parser_of
from sb3_ext.train import environments
from sb3_ext.train.environments import evaluation_seed
from sb3_ext.train.loading import SavedRun
from sb3_ext.train.play import enjoy, record_video
from sb3_ext.train.train import Train
from sb3_ext.train.train import main as train_main
from tests.sb3_ext.helpers import GAME, SMALL_RUN, equal, run_of
from tests.sb3_ext.runs.killed import held_by_another

HOST = "resgym/HironakaHost-v0"
AGENT = "resgym/HironakaAgent-v0"
BOTH = "resgym/Hironaka-v0"
# Enough for one update of every algorithm, with few games.
OFF_POLICY = ["n_envs:8", "learning_starts:64", "batch_size:16", "buffer_size:1000"]
FLATTEN = "sb3_ext.networks.extractors.FlattenExtractor"
SMALL = {
    "a2c": ["n_envs:8", "n_steps:4", "policy_kwargs:{features_extractor_class: flatten}"],
    "ddqn": [*OFF_POLICY, f"policy_kwargs:{{net_arch: [16], features_extractor_class: {FLATTEN}}}"],
    "dqn": OFF_POLICY,
    "qrdqn": OFF_POLICY,
    **dict.fromkeys(("ppo", "ppo_lstm", "ppo_mask"), ("n_envs:8", "n_steps:8", "batch_size:32")),
}


def train(tmp_path, algorithm, env_id, *more):
    common = ["--algo", algorithm, "--env", env_id, "-n", "160", "-f", str(tmp_path)]
    few = ["--seed", "1", "--eval-freq", "80", "--eval-episodes", "1", "--n-eval-envs", "1"]
    return train_main([*common, *few, "--verbose", "0", "-params", *SMALL[algorithm], *more])


def same_networks(*runs):
    models = (DDQN.load(run / "resgym-HironakaHost-v0.zip") for run in runs)
    return equal(*(model.policy.state_dict() for model in models))


PAIRS = [(each, env_id) for each in SMALL for env_id in (AGENT, BOTH)]


@pytest.mark.parametrize(("algorithm", "env_id"), [*PAIRS, ("ddqn", HOST), ("ppo", HOST)])
def test_every_shipped_file_trains_and_plays(tmp_path, algorithm, env_id, capsys):
    assert train(tmp_path, algorithm, env_id) == 0
    folder = run_of(tmp_path, algorithm, env_id)
    name = env_id.replace("/", "-")
    if algorithm == "ppo_mask" and env_id == AGENT:
        model = ObservedMaskPPO.load(folder / f"{name}.zip")
        observation = model.observation_space.sample()
        for axis in range(3):  # the one that is legal, also where actions are drawn
            observation["coords"] = np.eye(3, dtype="int8")[axis]
            assert int(model.predict(observation, deterministic=False)[0]) == axis
    assert (folder / f"{name}.zip").is_file()
    assert (folder / "best_model.zip").is_file()
    rows = (folder / "0.monitor.csv").read_text().splitlines()
    assert len(rows) > 2, "no finished episode was written"
    assert yaml.safe_load((folder / "config.yml").read_text())["algo"] == algorithm
    (begun,) = map(json.loads, (folder / "runs.jsonl").read_text().splitlines())
    assert {"command", "commit", "seed", "versions"} < begun.keys()
    capsys.readouterr()
    common = ["--algo", algorithm, "--env", env_id, "-f", str(tmp_path)]
    assert enjoy([*common, "--no-render", "-n", "220", "--exp-id", "1"]) == 0
    assert "Mean episode length" in capsys.readouterr().out


def test_runs_that_start_together_get_folders_of_their_own(tmp_path, monkeypatch):
    first = run_of(tmp_path)
    place = Train.place
    places = iter([first])  # looked for before the other one has made it
    monkeypatch.setattr(Train, "place", lambda *given: next(places, None) or place(*given))
    with held_by_another(first):
        assert train(tmp_path, "ddqn", HOST) == 0
    assert sorted(path.name[-2:] for path in first.parent.iterdir()) == ["_1", "_2"]


def test_every_flag_of_rl_zoo3_is_there_or_refused_by_its_name(monkeypatch):
    theirs = []
    ours = parser_of(Train)

    def stop(parser):
        theirs.append(parser)
        raise InterruptedError

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    with pytest.raises(InterruptedError):
        rl_zoo3.train.train()
    ours, theirs = (
        {flag for action in parser._actions for flag in action.option_strings}
        for parser in (ours, *theirs)
    )
    assert not theirs - ours
    assert ours - theirs == {
        *("--actors", "--checkpoint-updates", "--dry-run", "--import", "--init-from", "--out"),
        *("--resume", "--starts", "--stop", "--trust"),
        *("--deterministic", "--tf32", "--detect-anomaly"),
    }


def test_null_is_the_default_as_in_rl_zoo3():
    keys = "batch_size callback clip_range_vf env_kwargs env_wrapper frame_stack n_envs normalize"
    nulls = [f"{key}:null" for key in [*keys.split(), "monitor_kwargs", "policy_kwargs"]]
    assert train_main(["--env", "CartPole-v1", "--dry-run", "-params", *nulls]) == 0


@pytest.mark.parametrize("algorithm", ["ddqn", "ppo"])
def test_ordinary_environments_are_trained_with_the_shipped_files(tmp_path, capsys, algorithm):
    place = tmp_path / "a[1]%s? {} é"  # patterns and formats
    arguments = ["--algo", algorithm, "--env", "CartPole-v1", "-f", str(place)]
    few = ["-n", "200", "--eval-freq", "-1", "-params", *SMALL[algorithm][:3]]
    for number in (1, 2):
        assert train_main([*arguments, *few]) == 0
        assert (place / algorithm / f"CartPole-v1_{number}/CartPole-v1.zip").exists()
    assert "Using DummyVecEnv: " in capsys.readouterr().out
    assert enjoy([*arguments, "--no-render", "-n", "20"]) == 0
    assert "CartPole-v1_2/CartPole-v1.zip" in capsys.readouterr().out


def test_an_error_inside_an_environment_is_shown(tmp_path, monkeypatch, capsys):
    def broken(*_):
        raise RuntimeError("its own fault")

    monkeypatch.setattr("sb3_ext.train.environments.TensorVecEnv", broken)
    assert train(tmp_path, "ddqn", HOST) == 2
    assert "RuntimeError: its own fault" in capsys.readouterr().err


@pytest.mark.parametrize("env_id", [HOST, "CartPole-v1"])
def test_evaluations_draw_other_starts_than_training(tmp_path, monkeypatch, env_id):
    seeds = []
    make = environments.make_vec_env

    def noted(*given, **more):
        env = make(*given, **more)
        seeds.append({*range(given[2], given[2] + env.num_envs)})
        return env

    monkeypatch.setattr(environments, "make_vec_env", noted)
    assert train(tmp_path, "ddqn", env_id, "policy:MlpPolicy") == 0
    assert enjoy(["--algo", "ddqn", "--env", env_id, "-f", str(tmp_path), "--no-render"]) == 0
    assert sorted(map(len, seeds)) == [1, 1, 8]
    training = next(each for each in seeds if len(each) == 8)
    assert all(each is training or not each & training for each in seeds)


def test_no_evaluation_row_has_the_seed_of_a_training_row():
    for seed in (0, 2**31 - 1, 2**31, 2**32 - 1):
        assert 0 <= (other := evaluation_seed(seed)) < 2**32
        assert abs(other - seed) >= 2**31  # and a run has at most 2^20 rows


def test_schedules_of_the_file_reach_stock_algorithms(tmp_path):
    """What rl_zoo3 makes of any such text is linear in the progress, whatever the word."""
    config = tmp_path / "dqn.yml"
    rate = {"schedule": "exponential", "init": 1.0e-3, "final": 1.0e-4, "rate": 1.0e-6}
    rate["unit"] = "progress"
    values = {"policy": "MlpPolicy", "n_timesteps": 400, "n_envs": 4, "learning_starts": 40}
    values |= {"train_freq": 1, "learning_rate": rate}
    arguments = ["--algo", "dqn", "--env", HOST, "-conf", str(config), "--eval-freq", "-1"]
    config.write_text(yaml.safe_dump({"default": values}))
    assert train_main([*arguments, "-f", str(tmp_path), "--verbose", "0"]) == 0
    model = DQN.load(run_of(tmp_path, "dqn") / "resgym-HironakaHost-v0.zip")
    assert model.policy.optimizer.param_groups[0]["lr"] == pytest.approx(1e-4, rel=0.01)


def test_a_resumed_run_equals_one_that_was_not_interrupted(tmp_path):
    whole, run = (run_of(tmp_path / name) for name in ("whole", "parts"))
    own = "monitor_kwargs:{info_keywords: [overflow]}"  # beside what a resumed run needs
    assert train(tmp_path / "whole", "ddqn", HOST, own, "-n", "640") == 0
    assert train(tmp_path / "parts", "ddqn", HOST, own, "-n", "320") == 0
    assert train_main(["--resume", str(run), "-n", "640"]) == 0
    assert same_networks(whole, run)
    rows, expected = (
        [row.split(",")[::3] for row in (each / "0.monitor.csv").read_text().splitlines()[1:]]
        for each in (run, whole)
    )
    assert rows == expected  # of returns and what was asked for
    assert len(list(run.parent.iterdir())) == 1, "the same run goes on"


def test_a_run_can_start_from_the_networks_of_another(tmp_path):
    assert train(tmp_path, "ddqn", HOST, "-n", "320") == 0
    first = run_of(tmp_path)
    agent = ("-i", f"{first}/resgym-HironakaHost-v0.zip", "--trust")
    for number, given in enumerate((("--init-from", str(first)), agent)):
        # Fewer transitions than the warm-up: no update changes what was taken over.
        assert train(tmp_path / f"{number}", "ddqn", HOST, "-n", "32", *given) == 0
        assert same_networks(first, run_of(tmp_path / f"{number}"))


def test_conf_file_takes_a_name_of_the_package(tmp_path, capsys):
    assert train(tmp_path, "ddqn", HOST, "-conf", "ddqn/axes4", "--dry-run") == 0
    assert "dimension: 4" in capsys.readouterr().out


def test_a_trained_model_is_filmed_in_its_own_environment(tmp_path):
    assert train_main([*SMALL_RUN, "-f", str(tmp_path), "-n", "160", "--eval-freq", "-1"]) == 0
    arguments = ["--algo", "ddqn", "--env", GAME, "-f", str(tmp_path), "-o", str(tmp_path)]
    assert record_video([*arguments, "-n", "4", "--n-envs", "1"]) == 0
    (path,) = tmp_path.glob("*.mp4")
    with VideoFileClip(str(path)) as film:
        assert film.fps == 2
        frames = [np.array(frame) for frame in film.iter_frames()]
    assert len(frames) >= 4
    assert frames[0].shape == (HEIGHT, WIDTH, 3)
    # White paper with a drawing on it that changes from move to move.
    assert 0.3 < (frames[0] > 240).all(2).mean() < 0.99
    assert np.abs(frames[0].astype(int) - frames[1]).max() > 100
    for changes, opponent in (({}, "choose_first"), ({"opponent": "random"}, "random")):
        env = SavedRun(run_of(tmp_path)).make_env(3, **changes)
        assert isinstance(env, TensorVecEnv)
        assert env.venv.spec.kwargs["opponent"] == opponent


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
    arguments += ["--verbose", "0", "-params", *SMALL[algorithm]]
    arguments += ["--eval-env-kwargs", *EVALUATION[env_id]]
    monkeypatch.setattr(sys, "argv", arguments)
    rl_zoo3.train.train()
    (folder,) = (tmp_path / algorithm).iterdir()
    returns = np.load(folder / "evaluations.npz")["results"]
    assert returns.size >= 2
    assert abs(returns).max() > 1  # a step costs or gives 1
    assert "opponent" in (folder / env_id.replace("/", "-") / "config.yml").read_text()
    monkeypatch.setattr(sys, "argv", ["enjoy", *common, "--no-render", "-n", "300"])
    rl_zoo3.enjoy.enjoy()
    assert "Mean episode length" in capsys.readouterr().out
    if env_id == HOST:  # a row of the scoreboard, from the folder as it is
        few = load("worst-20").select(torch.arange(4))
        monkeypatch.setattr(tasks, "load", lambda part: few)
        file = tmp_path / "rows.json"
        name = "ppo, seed 1"
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
    given[given.index("-params") + 1 : given.index("-params") + 1] = SMALL["ppo"]
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
    own = "env_kwargs:{opponent: choose_first, reward: step, max_episode_steps: 1}"
    for more in ([], ["--eval-env-kwargs", "reward:survival"]):
        assert train(tmp_path, "ppo", HOST, own, "--eval-episodes", "5", *more) == 0
    first, second = (
        np.load(tmp_path / "ppo" / f"resgym-HironakaHost-v0_{k}" / "evaluations.npz")
        for k in (1, 2)
    )
    assert first["results"].max() == first["results"].min() == -1
    assert first["ep_lengths"].max() == 1
    assert second["ep_lengths"].max() > 1  # told otherwise: nothing of the training's
