"""Videos and rewards of a trained run."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from moviepy import VideoFileClip

from resgym.render.positions import HEIGHT, WIDTH
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.train.loading import SavedRun
from sb3_ext.train.play import enjoy, record_video
from sb3_ext.train.train import main as train

HOST = "resgym/HironakaHost-v0"
RUN = "ddqn/resgym-HironakaHost-v0_1"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    sizes = ["n_envs:8", "learning_starts:64", "batch_size:16", "buffer_size:1000"]
    more = ["policy_kwargs:{net_arch: [16]}", "env_kwargs:{opponent: choose_last}"]
    arguments = ["--algo", "ddqn", "--env", HOST, "-n", "480", "-f", str(folder), "--seed", "1"]
    quiet = ["--eval-freq", "-1", "--verbose", "0"]
    assert train([*arguments, *quiet, "-params", *sizes, *more]) == 0
    return folder


def test_a_trained_model_is_filmed(runs, tmp_path):
    arguments = ["--algo", "ddqn", "--env", HOST, "-f", str(runs), "-o", str(tmp_path)]
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


def test_a_saved_run_plays_in_its_own_environment(runs):
    env = SavedRun(runs / RUN).make_env(3)
    assert isinstance(env, TensorVecEnv)
    assert env.venv.spec.kwargs["opponent"] == "choose_last"
    other = SavedRun(runs / RUN, {"opponent": "random"}).make_env(1)
    assert other.venv.spec.kwargs["opponent"] == "random"


def test_a_cut_model_and_one_that_is_no_model_are_told_apart(runs, tmp_path, capsys):
    whole = runs / RUN / "resgym-HironakaHost-v0.zip"
    content, said = whole.read_bytes(), []
    play = ["--algo", "ddqn", "--env", HOST, "-f", str(runs), "--no-render", "-n", "5"]
    for change in ("cut", "pickle"):
        whole.write_bytes(content[:-50])
        if change == "pickle":
            with zipfile.ZipFile(whole, "w") as archive:
                archive.writestr("policy.pth", b"\x80\x04N.")
        assert enjoy(play) == 2
        said += capsys.readouterr().err.splitlines()
    whole.write_bytes(content)
    assert len(said) == 2
    assert "policy.pth: contains something other than weights" not in said[0]
    assert "policy.pth: contains something other than weights" in said[1]
