"""Videos of a trained run, and the environment that it is played in."""

import numpy as np
from moviepy import VideoFileClip

from resgym.pictures.games import HEIGHT, WIDTH
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.train.loading import SavedRun
from sb3_ext.train.play import record_video
from sb3_ext.train.train import main as train
from tests.sb3_ext.train.helpers import GAME, SMALL_RUN, run_of


def test_a_trained_model_is_filmed_in_its_own_environment(tmp_path):
    assert train([*SMALL_RUN, "-f", str(tmp_path), "-n", "160", "--eval-freq", "-1"]) == 0
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
        env = SavedRun(run_of(tmp_path), changes).make_env(3)
        assert isinstance(env, TensorVecEnv)
        assert env.venv.spec.kwargs["opponent"] == opponent
