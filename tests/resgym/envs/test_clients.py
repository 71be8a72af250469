"""Tools that others wrote for Gymnasium's environments, on ours, as they are."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.wrappers import vector

from tests.resgym.envs.helpers import AGENT, BOTH, HOST, IDS, MODES, SHORT, array, leaves, make_vec

# The recipe of docs/tutorials/environments.md.
RECIPE: dict[str, Any] = {
    "output": "numpy",
    "autoreset_mode": "NextStep",
    "episode_statistics": False,
}


def _half(observation: Any) -> Any:
    return observation * np.float32(0.5)


BOX = spaces.Box(-0.5, 0.5, (6, 3))
OBSERVATIONS: dict[str, dict[str, Any]] = {
    "DtypeObservation": {"dtype": np.float64},
    "FlattenObservation": {},
    "NormalizeObservation": {},
    "RescaleObservation": {"min_obs": np.float32(0), "max_obs": np.float32(1)},
    "ReshapeObservation": {"shape": (3, 6)},
    "TransformObservation": {"func": _half, "single_observation_space": BOX},
    "VectorizeTransformObservation": {
        "wrapper": gymnasium.wrappers.TransformObservation,
        "func": _half,
        "observation_space": BOX,
    },
}
REWARDS: dict[str, dict[str, Any]] = {
    "ClipReward": {"min_reward": -0.5, "max_reward": 0.5},
    "NormalizeReward": {},
    "TransformReward": {"func": _half},
    "VectorizeTransformReward": {"wrapper": gymnasium.wrappers.TransformReward, "func": _half},
}
OTHERS: dict[str, dict[str, Any]] = {
    "DictInfoToList": {},
    "NumpyToTorch": {},
    "RecordEpisodeStatistics": {},
    "TransformAction": {"func": np.asarray},
    "VectorizeTransformAction": {
        "wrapper": gymnasium.wrappers.TransformAction,
        "func": int,
        "action_space": spaces.Discrete(4),
    },
}
# They are for pictures, for boxes of actions, and for arrays of another library.
LEFT_OUT = {
    *("ClipAction", "RescaleAction", "GrayscaleObservation", "ResizeObservation"),
    *("FilterObservation", "HumanRendering", "RecordVideo"),
    *("ArrayConversion", "JaxToNumpy", "JaxToTorch"),
}


# Older ones want a mask beside every entry of `info`, and count otherwise in SAME_STEP mode.
needs_recent_wrappers = pytest.mark.skipif(
    tuple(map(int, gymnasium.__version__.split(".")[:2])) < (1, 3),
    reason="wrappers of Gymnasium 1.3 and later",
)


def play(
    env: gymnasium.vector.VectorEnv, steps: int = 40, seed: int = 0, tensors: bool = False
) -> list[Any]:
    env.action_space.seed(seed)
    seen = [env.reset(seed=seed)]
    for _ in range(steps):
        actions = env.action_space.sample()
        seen.append(env.step(torch.as_tensor(actions) if tensors else actions))
        observation, *rest = seen[-1]
        assert len(array(rest[0])) == env.num_envs
        assert all(len(leaf) == env.num_envs for leaf in leaves(observation))
    return seen


@needs_recent_wrappers
def test_every_wrapper_of_gymnasium_is_tried_or_left_out():
    assert {*OBSERVATIONS, *REWARDS, *OTHERS, *LEFT_OUT} == set(vector.__all__)


@needs_recent_wrappers
@pytest.mark.parametrize("name", [*OBSERVATIONS, *REWARDS, *OTHERS])
def test_wrappers_of_vector_environments(name):
    if name == "NumpyToTorch":
        pytest.importorskip("array_api_compat", reason="Gymnasium's wrapper needs it")
    made = {**OBSERVATIONS, **REWARDS, **OTHERS}[name]
    env = getattr(vector, name)(make_vec(HOST, 3, **SHORT, **RECIPE), **made)
    seen = play(env, tensors=name == "NumpyToTorch")
    assert any(array(terminated).any() for _, _, terminated, _, _ in seen[1:])
    if name in OBSERVATIONS:
        for observation, *_ in seen:
            for row in observation:
                assert row.shape == env.single_observation_space.shape
                assert row.dtype == env.single_observation_space.dtype


@pytest.mark.parametrize("full_info", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", IDS)
def test_every_key_of_numpy_info_has_its_mask(env_id, mode, full_info):
    keywords: dict[str, Any] = {**SHORT, "autoreset_mode": mode, "full_info": full_info}
    env = make_vec(env_id, 3, output="numpy", **keywords)
    _, info = env.reset(seed=0)
    for _ in range(30):
        named = {key for key in info if key[0] != "_"}
        assert info.keys() - named == {f"_{key}" for key in named}
        for key in named:
            assert (info[f"_{key}"].dtype, info[f"_{key}"].shape) == (bool, (3,))
            assert key in ("episode", "final_obs") or info[f"_{key}"].all()
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        if mode == "DISABLED" and (ended := terminated | truncated).any():
            env.reset(options={"reset_mask": ended})
    assert not any(key[0] == "_" for key in make_vec(HOST, 3).reset()[1])


@pytest.mark.parametrize("output", ["torch", "numpy"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", IDS)
def test_full_info_has_the_same_keys_always(env_id, mode, output):
    def signature(info: dict[str, Any]) -> dict[str, Any]:
        return {
            name: signature(value)
            if isinstance(value, dict)
            else (type(value), str(value.dtype), tuple(value.shape))
            for name, value in sorted(info.items())
        }

    keywords: dict[str, Any] = {**SHORT, "autoreset_mode": mode, "output": output}
    plain, full = make_vec(env_id, 3, **keywords), make_vec(env_id, 3, full_info=True, **keywords)
    observation, _ = plain.reset(seed=0)
    _, info = full.reset(seed=0)
    kept, ended_before = signature(info), np.zeros(3, bool)
    ends = 0
    for _ in range(30):
        mask = array(info["action_mask"])
        assert np.array_equal(mask, array(full.action_masks()))
        if mode == "DISABLED" and ended_before.any():
            restart = {"options": {"reset_mask": ended_before}}
            observation, _ = plain.reset(**restart)
            _, info = full.reset(**restart)
            mask = array(info["action_mask"])
        observation, _, terminated, truncated, few = plain.step(mask.argmax(1))
        *_, info = full.step(mask.argmax(1))
        assert signature(info) == kept
        ended = array(terminated) | array(truncated)
        for name, value in few.items():
            for one, other in zip(leaves(value), leaves(info[name]), strict=True):
                assert np.array_equal(one, other), name
        if "final_obs" in info and not ended.any():
            assert "final_obs" not in few
            for shown, final in zip(leaves(observation), leaves(info["final_obs"]), strict=True):
                assert np.array_equal(shown, final)
                assert not np.shares_memory(shown, final)
        assert np.array_equal(array(info["_episode"]), ended)
        ends += int(ended.sum())
        ended_before = ended
    assert ends > 5
    assert {"action_mask", "overflow", "episode", "_episode"} <= set(info)
    assert ("final_obs" in info) is (mode == "SAME_STEP")


@pytest.mark.parametrize("output", ["torch", "numpy"])
@pytest.mark.parametrize("env_id", IDS)
def test_flat_observations_are_those_of_gymnasium(env_id, output):
    """`flatten` of one game's observation, as float32, for single and vector environments."""
    points = make_vec(env_id, 3, output=output, **SHORT)
    flat = make_vec(env_id, 3, output=output, observation="flat", **SHORT)
    space, shown = points.single_observation_space, flat.single_observation_space
    assert isinstance(shown, spaces.Box)
    assert shown.dtype == np.float32
    assert len(shown.shape) == 1
    low = spaces.flatten_space(space)
    assert np.array_equal(shown.low, low.low)
    assert np.array_equal(shown.high, low.high)
    one = gymnasium.make(env_id, observation="flat", **SHORT)
    assert one.observation_space == shown
    (first, _), (row, _) = flat.reset(seed=4), one.reset(seed=4)
    assert np.array_equal(array(first)[0], row)
    ends = 0
    observation, _ = points.reset(seed=4)
    for _ in range(20):
        if env_id != HOST:
            observation = {name: array(value) for name, value in observation.items()}
        for index in range(3):
            part = (
                array(observation)[index]
                if env_id == HOST
                else {name: value[index] for name, value in observation.items()}
            )
            assert np.array_equal(spaces.flatten(space, part), array(first)[index])
            assert array(first)[index] in shown
        actions = array(points.action_masks()).argmax(1)
        observation, *_ = points.step(actions)
        first, *_, info = flat.step(actions)
        if "final_obs" in info:
            assert info["final_obs"].shape == first.shape
            ends += 1
    assert ends


@pytest.mark.parametrize("env_id", [AGENT, BOTH])
def test_vector_environments_sample_legal_actions_as_single_ones_do(env_id):
    env = make_vec(env_id, 5, **SHORT)  # an illegal action is an error
    env.action_space.seed(1)
    assert env.action_space.contains(env.action_space.sample())  # before any reset
    seen = {int(a) for *_, info in [play(env, 80)] for a in env.action_space.sample()}
    assert seen <= set(range(int(env.single_action_space.n)))
    legal = [set(np.flatnonzero(row)) for row in array(env.action_masks())]
    drawn = np.stack([env.action_space.sample() for _ in range(200)])
    assert [set(column) for column in drawn.T] == legal
    for copied in (copy.deepcopy(env.action_space), pickle.loads(pickle.dumps(env.action_space))):
        assert type(copied) is spaces.MultiDiscrete
        assert copied == env.action_space
