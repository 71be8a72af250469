"""One batched environment from a list of functions, as SB3 and rl_zoo3 make environments."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TransformReward
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor

from sb3_ext.adapter import TensorVecEnv
from tests.fakes import ToyEnv, ToyVectorEnv, register_toy

TOY_ID = register_toy()


def toy_of(env: Any) -> ToyVectorEnv:
    toy = env.unwrapped.venv.unwrapped
    assert isinstance(toy, ToyVectorEnv)
    return toy


def test_keyword_arguments_reach_the_batched_environment() -> None:
    env = make_vec_env(
        TOY_ID,
        n_envs=5,
        seed=3,
        env_kwargs={"dict_obs": True, "num_actions": 6},
        vec_env_cls=TensorVecEnv,
        vec_env_kwargs={"illegal": "error"},
    )
    toy = toy_of(env)
    assert (env.num_envs, toy.num_envs, toy.num_actions) == (5, 5, 6)
    assert (toy.dict_obs, toy.illegal, toy.render_mode) == (True, "error", "rgb_array")
    observation = env.reset()
    assert toy.reset_calls[-1] == ([3, 4, 5, 6, 7], None)
    assert observation["legal"].shape == (5, 6)
    env.close()


@pytest.mark.parametrize("where", ["make", "wrapper"])
def test_time_limits_are_kept(where: str) -> None:
    def make() -> gymnasium.Env:
        if where == "make":
            return gymnasium.make(TOY_ID, max_episode_steps=5)
        return Monitor(gymnasium.wrappers.TimeLimit(gymnasium.make(TOY_ID), 5))

    assert toy_of(TensorVecEnv([make] * 3)).horizon == 5


def test_monitor_file_of_the_single_environments_is_written(tmp_path: Path) -> None:
    env = make_vec_env(
        TOY_ID, n_envs=3, seed=0, monitor_dir=str(tmp_path), vec_env_cls=TensorVecEnv
    )
    env.reset()
    episodes = []
    for _ in range(20):
        _, _, _, infos = env.step(np.zeros(3, dtype=int))
        episodes += [info["episode"] for info in infos if info]
    env.close()
    assert [path.name for path in tmp_path.iterdir()] == ["0.monitor.csv"]
    header, columns, *lines = (tmp_path / "0.monitor.csv").read_text().splitlines()
    assert TOY_ID in header
    assert columns == "r,l,t"
    assert [float(line.split(",")[0]) for line in lines] == [each["r"] for each in episodes]


def test_monitor_that_appends_still_appends(tmp_path: Path) -> None:
    kwargs = {"monitor_dir": str(tmp_path), "vec_env_cls": TensorVecEnv}
    counts = []
    for override in (True, False):
        env = make_vec_env(TOY_ID, seed=0, monitor_kwargs={"override_existing": override}, **kwargs)
        env.reset()
        for _ in range(20):
            env.step(np.zeros(1, dtype=int))
        env.close()
        counts.append(len((tmp_path / "0.monitor.csv").read_text().splitlines()) - 2)
    assert counts[1] == 2 * counts[0] > 0


def test_rl_zoo_makes_its_environments_of_this_class(tmp_path: Path) -> None:
    """The hook `default_vec_env_cls` of rl_zoo3, for training and evaluation environments."""
    ExperimentManager = pytest.importorskip("rl_zoo3.exp_manager").ExperimentManager

    configuration = tmp_path / "ppo.yml"
    configuration.write_text(
        f"{TOY_ID}:\n  n_envs: 4\n  n_timesteps: 64\n  n_steps: 8\n  batch_size: 16\n"
        "  policy: MlpPolicy\n"
    )
    ExperimentManager.default_vec_env_cls = TensorVecEnv
    try:
        manager = ExperimentManager(
            SimpleNamespace(),
            "ppo",
            TOY_ID,
            str(tmp_path / "logs"),
            config=str(configuration),
            device="cpu",
            seed=1,
            eval_freq=32,
            n_eval_envs=2,
            verbose=0,
            log_interval=10,
        )
        model, _ = manager.setup_experiment()
        assert isinstance(model.env.unwrapped, TensorVecEnv)
        assert model.env.num_envs == 4
        manager.learn(model)
        model.env.close()
    finally:
        ExperimentManager.default_vec_env_cls = None
    (written,) = Path(manager.save_path).glob("*.monitor.csv")
    assert len(written.read_text().splitlines()) > 4


def test_what_cannot_be_batched_is_refused() -> None:
    with pytest.raises(ValueError, match="is not registered with Gymnasium"):
        TensorVecEnv([ToyEnv])
    with pytest.raises(ValueError, match="Pendulum-v1 has no vector_entry_point"):
        TensorVecEnv([lambda: gymnasium.make("Pendulum-v1")])
    with pytest.raises(ValueError, match="env_wrapper: TransformReward"):
        TensorVecEnv([lambda: TransformReward(gymnasium.make(TOY_ID), abs)])


@pytest.mark.filterwarnings("ignore:.*HumanRendering wrapper is being applied")
def test_human_rendering_becomes_pictures() -> None:
    env = TensorVecEnv([lambda: gymnasium.make(TOY_ID, render_mode="human")] * 2)
    assert env.render_mode == "rgb_array"
