"""The contract of SB3's VecEnv, on the toy environment."""

import json
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete, MultiDiscrete, Tuple
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper
from gymnasium.wrappers.vector import DictInfoToList
from stable_baselines3.common.monitor import Monitor, load_results

from sb3_ext.adapter import TensorVecEnv, reached_observation
from sb3_ext.adapter.seam import STEPS_BETWEEN_WRITES, MonitorFile
from sb3_ext.ddqn import DDQN
from tests.fakes import ToyEnv, ToyVectorEnv, forbid_waiting, register_toy


def read_monitor(folder):
    """The columns of the monitor file that SB3 finds in a folder."""
    return {name: column.tolist() for name, column in load_results(str(folder)).items()}


def test_results_are_the_callers_own():
    """Of an environment with gradients that reuses its memory; the caller writes to them, too."""

    class Reusing(VectorWrapper):
        def reset(self, **kwargs):
            self.memory, info = self.env.reset(**kwargs)
            return self.memory, info

        def step(self, actions):
            observation, rewards, *results = self.env.step(actions)
            self.memory.copy_(observation)
            return self.memory, rewards.requires_grad_(), *results

    adapted = TensorVecEnv(Reusing(ToyVectorEnv(3, horizon=2)))
    actions = np.zeros(3, dtype=int)
    first = adapted.reset()
    before = first.copy()
    second, _, _, infos = adapted.step(actions)
    np.testing.assert_array_equal(first, before)
    assert not np.array_equal(first, second)
    second[:] = np.nan
    infos[0]["mine"] = 1
    assert all("mine" not in info for info in infos[1:])
    _, _, _, infos = adapted.step(actions)
    assert all("mine" not in info for info in infos)
    third, *_ = adapted.step_tensors(actions)
    assert not third.isnan().any()
    before = third.clone()
    adapted.step_tensors(actions)
    assert torch.equal(third, before)


def test_seeds_and_options_count_once_at_the_next_reset():
    seen = []

    class Listening(VectorWrapper):
        def reset(self, *, seed=None, options=None):
            seen.append((seed, options))
            return self.env.reset(seed=seed)

    adapted = TensorVecEnv(Listening(ToyVectorEnv(2)))
    assert adapted.seed(5) == [5, 6]
    adapted.set_options({"length": 4})
    assert seen == []
    adapted.reset()
    adapted.reset()
    adapted.set_options([{"points": 1}, {}])  # one for each row
    adapted.reset()
    adapted.set_options()
    adapted.reset()
    plain = (None, None)
    assert seen[3][1].pop("reset_mask").tolist() == [True, False]
    assert seen == [([5, 6], {"length": 4}), plain, plain, (None, {"points": 1}), plain]


def test_attributes():
    toy = ToyVectorEnv(3, render_mode="rgb_array")
    adapted = TensorVecEnv(VectorWrapper(toy))
    assert adapted.get_attr("horizon", indices=1) == [8]
    assert adapted.get_attr("action_space") == [toy.single_action_space] * 3
    assert adapted.render_mode == "rgb_array"
    assert adapted.metadata["render_fps"] == 7
    adapted.set_attr("_step", torch.tensor([0, 1, 2]))
    assert adapted.get_attr("_step", indices=[2, 1]) == [2, 1]
    assert len(adapted.env_method("action_masks", indices=[2])) == 1
    with pytest.raises(ValueError, match=r"indices: got \[0\]; load_state_dict is one of all"):
        adapted.env_method("load_state_dict", {}, indices=[0])
    toy.compute_reward = abs  # SB3's HER asks one row for any goals
    assert len(adapted.env_method("compute_reward", torch.ones(3), indices=[0])[0]) == 3
    adapted.set_attr("illegal", "error", indices=range(3))
    with pytest.raises(ValueError, match=r"indices: got \[0\]"):
        adapted.set_attr("illegal", "penalty", indices=[0])
    with pytest.raises(AttributeError):
        adapted.get_attr("no_such_thing")
    assert adapted.env_is_wrapped(Monitor) == [True] * 3
    assert adapted.env_is_wrapped(gymnasium.wrappers.TimeLimit, indices=0) == [False]
    assert adapted.env_is_wrapped(VectorWrapper) == [True] * 3


def test_an_accelerator_rarely_waits_for_the_monitor_file(tmp_path):
    file = MonitorFile(str(tmp_path / "0"), "Toy")
    episode = {"r": torch.ones(2), "l": torch.ones(2)}
    told = {"episode": episode, "_episode": torch.tensor([True, False])}
    for written in (*[0] * (STEPS_BETWEEN_WRITES - 1), STEPS_BETWEEN_WRITES):
        file.add(told, now=False)
        assert len(read_monitor(tmp_path)["r"]) == written
    file.add(told, now=False)
    file.close()
    assert len(read_monitor(tmp_path)["r"]) == STEPS_BETWEEN_WRITES + 1


def test_a_resumed_monitor_file_lists_no_episode_twice(tmp_path):
    def make():
        env = gymnasium.make(register_toy(), max_episode_steps=4)
        return Monitor(env, f"{tmp_path}/0", override_existing=False)

    adapted = TensorVecEnv([make] * 3)  # which begins the file
    adapted.reset_tensors()

    def play(steps):
        for _ in range(steps):
            adapted.step_tensors(np.zeros(3, dtype=int))
        state = adapted.state_dict()
        written = read_monitor(tmp_path)
        return state, (written["r"], written["l"])

    state, early = play(20)
    _, whole = play(30)
    assert len(whole[0]) > len(early[0]) > 0
    adapted = TensorVecEnv([make] * 3)  # as another process does
    adapted.load_state_dict(state)
    assert play(0)[1] == early
    assert play(30)[1] == whole
    for _ in "ab":
        adapted.close()
    first, *_ = (tmp_path / "0.monitor.csv").read_text().splitlines()
    assert json.loads(first[1:]).keys() == {"t_start", "env_id"}
    times = read_monitor(tmp_path)["t"]
    assert times == sorted(times)


def test_no_wait_between_steps_of_the_tensor_door(monkeypatch):
    """Nothing of the adapter asks a tensor for its value, which would stop an accelerator."""
    adapted = TensorVecEnv(ToyVectorEnv(4, horizon=1))  # with `final_obs` in every step
    adapted.reset_tensors()
    actions = torch.zeros(4, dtype=torch.int64)
    adapted.step_tensors(actions)
    results = [adapted.venv.step(actions) for _ in range(8)]
    monkeypatch.setattr(adapted, "venv", SimpleNamespace(step=lambda _: results.pop(0)))
    forbid_waiting(monkeypatch)
    for _ in range(8):
        observation, *_, info = adapted.step_tensors(actions)
        reached_observation(observation, info)


def test_what_is_no_tensor_environment_is_refused():
    with pytest.raises(TypeError, match=r"venv: got ToyEnv, need"):
        TensorVecEnv(ToyEnv())
    same_step = SyncVectorEnv([ToyEnv], autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(TypeError, match="info: got list; expected a dictionary"):
        TensorVecEnv(DictInfoToList(same_step)).reset()
    for space in (Discrete(2, start=1), MultiDiscrete([2, 2], start=[0, 1])):
        for name in ("single_action_space", "single_observation_space"):
            toy = ToyVectorEnv(2)
            setattr(toy, name, space)
            with pytest.raises(ValueError, match="expected one that starts at 0"):
                TensorVecEnv(toy)
    toy = ToyVectorEnv(2)
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED, None):
        toy.metadata["autoreset_mode"] = mode
        with pytest.raises(ValueError, match=r"autoreset_mode: got .*needs AutoresetMode"):
            TensorVecEnv(toy)
    toy = ToyVectorEnv(2)
    toy.single_observation_space = Tuple([Discrete(2)])
    with pytest.raises(NotImplementedError, match="observation space is not supported"):
        DDQN("MlpPolicy", toy)
    with pytest.raises(TypeError, match=r"\['num_rows'\]: only with a list"):
        TensorVecEnv(toy, num_rows=3)


class Forgetful(VectorWrapper):
    lost = "final_obs"

    def step(self, actions):
        *results, info = self.env.step(actions)
        return (*results, {key: info[key] for key in info if self.lost not in key})


@pytest.mark.parametrize(
    ("wrapper", "message"), [(Forgetful, "final_obs: missing"), (VectorWrapper, "info_keywords: ")]
)
def test_what_the_final_info_lacks_is_named(wrapper, message):
    adapted = TensorVecEnv(wrapper(ToyVectorEnv(2, horizon=1)), info_keywords=["won"])
    adapted.reset()
    with pytest.raises(ValueError, match=f"^{message}"):
        adapted.step_tensors(np.zeros(2, dtype=int))


def test_episodes_are_counted_if_the_environment_does_not():
    told, counted = (TensorVecEnv(each) for each in (ToyVectorEnv(3), Forgetful(ToyVectorEnv(3))))
    counted.venv.lost = "episode"
    seen = []
    for env in (told, counted):
        env.seed(3)
        env.reset()
        seen.append([])
        for number in range(30):
            infos = env.step(np.full(3, number % 4))[3]
            seen[-1] += [{**info["episode"], "t": 0} for info in infos if info]
            if number == 10 and env is counted:  # a checkpoint
                state = env.state_dict()
                env.reset()
                env.load_state_dict(state)
    assert seen[0] == seen[1] != []
