"""Environments of arrays: Gymnasium's own, and this package's with NumPy output."""

import copy
import pickle
from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from stable_baselines3.common.monitor import Monitor, load_results
from stable_baselines3.common.vec_env import DummyVecEnv

import resgym  # noqa: F401  registers the environments
from sb3_ext.adapter import TensorVecEnv
from tests.fakes import ToyEnv, ToyVectorEnv
from tests.sb3_ext.ddqn.helpers import make_model


class Toy(ToyEnv):
    """Tells the button that was pressed, and at the end how long it took."""

    def reset(self, **kwargs):
        self.steps = 0
        shown, _ = super().reset(**kwargs)
        return shown, {"begun": 1}

    def step(self, action):
        self.steps += 1
        *results, _ = super().step(int(action))
        ends = {"is_success": self.steps > 4} if results[2] or results[3] else {}
        return *results, {"pressed": int(action), **ends}


MAKE = {
    "sync": partial(SyncVectorEnv, autoreset_mode=AutoresetMode.SAME_STEP),
    "reused memory": partial(SyncVectorEnv, autoreset_mode=AutoresetMode.SAME_STEP, copy=False),
    "statistics": lambda fns: RecordEpisodeStatistics(MAKE["sync"](fns)),
    "async": partial(AsyncVectorEnv, autoreset_mode=AutoresetMode.SAME_STEP),
}


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("dict_obs", [False, True])
def test_rows_are_those_of_dummy_vec_env(kind, dict_obs, tmp_path):
    make = partial(Toy, dict_obs=dict_obs)
    keywords = ("is_success",)
    ours = TensorVecEnv(MAKE[kind]([make] * 3), filename=tmp_path, info_keywords=keywords)
    theirs = DummyVecEnv([lambda: Monitor(make(), info_keywords=keywords)] * 3)
    shown = []
    for env in (ours, theirs):
        env.seed(5)
        shown.append([env.reset(), copy.deepcopy(env.reset_infos)])
        for number in range(30):
            if kind != "async":
                shown[-1].append(np.stack(env.env_method("action_masks")))
            observation, rewards, dones, infos = env.step(np.full(3, number % 4))
            for info in infos:
                info.pop("episode", {}).pop("t", None)
                if "terminal_observation" not in info:  # SB3 says False in every step
                    info.pop("TimeLimit.truncated", None)
            shown[-1] += [observation, rewards, dones, infos]
    for mine, other in zip(*shown, strict=True):
        np.testing.assert_equal(mine, other)
    file = load_results(str(tmp_path))
    assert file["is_success"].any()
    assert not file["is_success"].all()
    ours.close()


def test_attributes_and_methods_of_some_rows():
    env = TensorVecEnv(MAKE["sync"]([Toy] * 3))
    env.reset()
    env.set_attr("steps", 7, indices=[0, 2])
    assert env.get_attr("steps") == [7, 0, 7]
    assert env.get_attr("steps", indices=1) == [0]
    masks = env.env_method("action_masks", indices=[1])
    np.testing.assert_array_equal(masks, env.action_masks()[1:2])


def test_options_of_some_rows():
    env = TensorVecEnv(MAKE["sync"]([Toy] * 3))
    env.set_options([{"length": 2}, {}, {"length": 3}])
    env.seed(1)
    env.reset()
    assert [int(each._rows._length[0]) for each in env.venv.envs][::2] == [2, 3]


def test_ddqn_learns_from_arrays_as_from_tensors():
    models = [
        make_model(TensorVecEnv(venv), learning_starts=16).learn(64, log_interval=1)
        for venv in (
            ToyVectorEnv(3, illegal="error"),
            MAKE["sync"]([partial(ToyEnv, illegal="error")] * 3),
        )
    ]
    first, second = (model.q_net.state_dict() for model in models)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert [each["r"] for each in models[0].ep_info_buffer] == [
        each["r"] for each in models[1].ep_info_buffer
    ]


@pytest.mark.parametrize("how", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("output", ["torch", "numpy"])
def test_copies_go_on_as_the_original(how, output, tmp_path):
    games = gymnasium.make_vec(
        "resgym/HironakaAgent-v0", num_envs=3, output=output, opponent="random"
    )
    env = TensorVecEnv(games, filename=tmp_path / "0")
    env.seed(0)
    env.reset()
    twin = how(env)
    for _ in range(30):
        actions = env.action_masks().argmax(1)
        results = [each.step(actions) for each in (env, twin)]
        for _, _, _, infos in results:
            for info in infos:
                info.get("episode", {}).pop("t", None)
        np.testing.assert_equal(*results)
    assert twin._monitor_file is None
