"""TensorVecEnv on the one-seat environments of the game."""

import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env

from sb3_ext.adapter import TensorVecEnv

resgym = pytest.importorskip("resgym")

HOST, AGENT = "resgym/HironakaHost-v0", "resgym/HironakaAgent-v0"


def test_a_resumed_monitor_file_lists_no_episode_twice(tmp_path):
    def games(override=True):
        return make_vec_env(
            HOST,
            n_envs=8,
            monitor_dir=str(tmp_path / "run"),
            monitor_kwargs={"override_existing": override},
            vec_env_cls=TensorVecEnv,
        )

    def play(env, steps):
        for _ in range(steps):
            env.step_tensors(torch.full((8,), 3))  # all axes
        env.state_dict()  # writes what is gathered

    def lines():
        (file,) = (tmp_path / "run").iterdir()
        _, _, *rows = file.read_text().splitlines()
        return [row.rsplit(",", 1)[0] for row in rows]  # without the time

    env = games()
    env.seed(0)
    env.reset_tensors()
    play(env, 20)
    state = env.state_dict()
    early = lines()
    play(env, 30)
    whole = lines()
    assert len(whole) > len(early) > 0
    env.close()

    again = games(override=False)
    again.load_state_dict(state)
    assert lines() == early
    play(again, 30)
    assert lines() == whole
    again.close()

    (file,) = (tmp_path / "run").iterdir()
    file.write_text("r,l,t\n" + "1,1,1\n" * 1000)  # another file of the same name stays
    other = games(override=False)
    other.load_state_dict(state)
    assert len(file.read_text().splitlines()) == 1001
    other.close()
