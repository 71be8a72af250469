"""Rows are those of SB3's DummyVecEnv; environments of arrays, and functions that make them."""

import copy
import pickle
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper
from gymnasium.wrappers import TransformReward
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor, load_results
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.adapter.seam import entries_of
from tests.fakes import ToyEnv, ToyVectorEnv, register_toy


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


class Numbers(VectorWrapper):
    """Says 1 and 0 for the ends, and [N, 1] for [N], as environments on a GPU do."""

    def step(self, actions):
        shown, *numbers, info = self.env.step(actions)
        return shown, *(each[:, None] * 1.0 for each in numbers), info


MAKE = {
    "sync": partial(SyncVectorEnv, autoreset_mode=AutoresetMode.SAME_STEP),
    "reused memory": partial(SyncVectorEnv, autoreset_mode=AutoresetMode.SAME_STEP, copy=False),
    "statistics": lambda fns: RecordEpisodeStatistics(MAKE["sync"](fns)),
    "numbers": lambda fns: Numbers(MAKE["sync"](fns)),
    "async": partial(AsyncVectorEnv, autoreset_mode=AutoresetMode.SAME_STEP),
}


def of_arrays(kind, dict_obs):
    make = partial(Toy, dict_obs=dict_obs)
    return MAKE[kind]([make] * 4), make


def of_tensors(dict_obs):
    return ToyVectorEnv(4, dict_obs, horizon=7), partial(ToyEnv, dict_obs=dict_obs, horizon=7)


def of_games(seat):
    kwargs = {"max_num_points": 6, "max_value": 6, "max_episode_steps": 4, "reward": "step"}
    make = gymnasium.make_vec, gymnasium.make
    env_id = f"resgym/Hironaka{seat}-v0"
    batched, single = (partial(each, env_id, opponent="random", **kwargs) for each in make)
    return batched(4), single


BATCHES = {
    **{f"{kind} {shown}": (of_arrays, kind, shown) for kind in MAKE for shown in (False, True)},
    **{f"tensors {shown}": (of_tensors, shown) for shown in (False, True)},
    **{seat: (of_games, seat) for seat in ("Host", "Agent")},
}


READ = ("terminal_observation", "TimeLimit.truncated", "episode")


def types(observation):
    return {key: value.dtype for key, value in entries_of(observation).items()}


@pytest.mark.parametrize("name", BATCHES)
def test_rows_are_those_of_dummy_vec_env(name, tmp_path):
    """All that SB3 reads, over many episodes."""
    if "statistics" in name:
        pytest.importorskip("gymnasium", "1.3")  # older ones count otherwise in SAME_STEP mode
    make_both, *about = BATCHES[name]
    batched, make = make_both(*about)
    keywords = ("is_success",) if make_both is of_arrays else ()
    ours = TensorVecEnv(batched, filename=tmp_path, info_keywords=keywords)
    theirs = DummyVecEnv([lambda: Monitor(make(), info_keywords=keywords)] * 4)
    shown = []
    ends = []
    episodes = []
    for env in (ours, theirs):
        env.seed(5)
        generator = np.random.default_rng(0)
        shown.append([env.reset()])
        if make_both is not of_games:  # whose single environments tell more
            shown[-1].append(copy.deepcopy(env.reset_infos))
        for _ in range(30):
            masks = np.stack(env.env_method("action_masks"))
            shown[-1].append(masks)
            # Unlike the game the toy also takes illegal actions.
            legal = masks if make_both is of_games else True
            actions = (generator.random(masks.shape) * legal).argmax(axis=1)
            observation, rewards, dones, infos = env.step(actions)
            for info in infos:
                if "terminal_observation" in info:
                    assert info["episode"].pop("t") >= 0
                    shown[-1].append(types(info["terminal_observation"]))
                    ends.append(info["TimeLimit.truncated"])
                    episodes.append(info["episode"])
                else:  # SB3 says False in every step
                    info.pop("TimeLimit.truncated", None)
            if env is ours:
                lines = (tmp_path / "monitor.csv").read_text().splitlines()
                assert len(lines) == 2 + len(episodes)
            if make_both is of_games:
                infos = [{key: info.get(key) for key in READ} for info in infos]
            shown[-1] += [observation, rewards, dones, infos]
            shown[-1] += [types(each) for each in (observation, rewards, dones)]
    for mine, other in zip(*shown, strict=True):
        np.testing.assert_equal(mine, other)
    assert 5 < sum(ends) < len(ends) - 5
    written = load_results(str(tmp_path))
    for key in "rl":
        assert written[key].tolist() == [each[key] for each in episodes[: len(written)]]
    if keywords:
        assert 0 < written["is_success"].mean() < 1
    ours.close()


def test_attributes_methods_and_options_of_some_rows():
    env = TensorVecEnv(MAKE["sync"]([Toy] * 3))
    env.reset()
    env.set_attr("steps", 7, indices=[0, 2])
    assert env.get_attr("steps") == [7, 0, 7]
    assert env.get_attr("steps", indices=1) == [0]
    masks = env.env_method("action_masks", indices=[1])
    np.testing.assert_array_equal(masks, env.action_masks()[1:2])
    env.set_options([{"length": 2}, {}, {"length": 3}])
    env.seed(1)
    env.reset()
    assert [int(each._rows._length[0]) for each in env.venv.envs][::2] == [2, 3]


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


TOY_ID = register_toy()


def toy_of(env):
    toy = env.unwrapped.venv.unwrapped
    assert isinstance(toy, ToyVectorEnv)
    return toy


def test_keyword_arguments_reach_the_batched_environment():
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


@pytest.mark.parametrize(
    "make",
    [
        lambda: gymnasium.make(TOY_ID, max_episode_steps=5),
        lambda: Monitor(gymnasium.wrappers.TimeLimit(gymnasium.make(TOY_ID), 5)),
    ],
)
def test_time_limits_are_kept(make):
    assert toy_of(TensorVecEnv([make] * 3)).horizon == 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (ToyEnv, "is not registered with Gymnasium"),
        (lambda: gymnasium.make("Pendulum-v1"), "Pendulum-v1 has no vector_entry_point"),
        (lambda: TransformReward(gymnasium.make(TOY_ID), abs), "env_wrapper: TransformReward"),
    ],
)
def test_what_cannot_be_batched_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        TensorVecEnv([make])
