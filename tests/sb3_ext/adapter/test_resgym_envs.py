"""TensorVecEnv on the one-seat environments of the game."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env

from sb3_ext.adapter import TensorVecEnv

resgym = pytest.importorskip("resgym")

HOST, AGENT = "resgym/HironakaHost-v0", "resgym/HironakaAgent-v0"


def test_made_by_sb3_from_the_id(tmp_path: Any) -> None:
    env = make_vec_env(
        AGENT,
        n_envs=3,
        seed=0,
        env_kwargs={"opponent": "zeillinger", "dimension": 4, "render_mode": None},
        monitor_dir=str(tmp_path),
        vec_env_cls=TensorVecEnv,
    )
    assert env.reset()["coords"].shape == (3, 4)
    assert [player.role for player in env.get_attr("opponents", 0)[0]] == ["host"]
    env.set_options({"points": [[0, 0, 0, 1], [1, 0, 0, 0]]})
    points = env.reset()["points"]
    np.testing.assert_array_equal(points[:, :2, 0], [[1, 0]] * 3)
    env.close()


def test_a_resumed_monitor_file_lists_no_episode_twice(tmp_path: Path) -> None:
    def games(override: bool = True) -> TensorVecEnv:
        return make_vec_env(
            HOST,
            n_envs=8,
            monitor_dir=str(tmp_path / "run"),
            monitor_kwargs={"override_existing": override},
            vec_env_cls=TensorVecEnv,
        )

    def play(env: TensorVecEnv, steps: int) -> None:
        for _ in range(steps):
            env.step_tensors(torch.full((8,), 3))  # all axes
        env.state_dict()  # writes what is gathered

    def lines() -> list[str]:
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
