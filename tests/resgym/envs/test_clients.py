"""Tools that others wrote for Gymnasium's environments, on ours, as they are."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import iterate
from gymnasium.wrappers import vector

from tests.resgym.envs.helpers import AGENT, BOTH, HOST, IDS, MODES, SHORT, array, make_vec, same

# The recipe of docs/environments.md.
RECIPE = {"output": "numpy", "autoreset_mode": "NextStep", "episode_statistics": False}


def _half(reward):
    return reward * np.float32(0.5)


WRAPPERS = {
    "DictInfoToList": {},
    "FlattenObservation": {},
    "NormalizeObservation": {},
    "NormalizeReward": {},
    "RecordEpisodeStatistics": {},
    "RescaleObservation": {"min_obs": np.float32(0), "max_obs": np.float32(1)},
    "TransformReward": {"func": _half},
    "VectorizeTransformReward": {"wrapper": gymnasium.wrappers.TransformReward, "func": _half},
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers_of_vector_environments(name):
    # Older ones want a mask beside every entry of `info`, and count otherwise in SAME_STEP mode.
    pytest.importorskip("gymnasium", "1.3")
    env = getattr(vector, name)(make_vec(HOST, 3, **SHORT, **RECIPE), **WRAPPERS[name])
    env.action_space.seed(0)
    shown, _ = env.reset(seed=0)
    ends = 0
    for _ in range(40):
        assert shown.shape[1:] == env.single_observation_space.shape
        assert shown.dtype == env.single_observation_space.dtype
        shown, reward, terminated, *_ = env.step(env.action_space.sample())
        assert len(shown) == len(reward) == len(terminated) == 3
        ends += int(np.sum(terminated))
    assert ends


def signature(info):
    """Kinds, types and shapes of everything in nested dictionaries."""
    return {
        name: signature(value)
        if isinstance(value, dict)
        else (type(value), str(value.dtype), tuple(value.shape))
        for name, value in sorted(info.items())
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("env_id", "output"), [(HOST, "numpy"), (AGENT, "numpy"), (BOTH, "torch")])
def test_full_info_has_the_same_keys_always(env_id, mode, output):
    keywords = {**SHORT, "autoreset_mode": mode, "output": output}
    plain = make_vec(env_id, 3, **keywords)
    full = make_vec(env_id, 3, full_info=True, **keywords)
    plain.reset(seed=0)
    _, info = full.reset(seed=0)
    kept = signature(info)
    ended = np.zeros(3, bool)
    ends = 0
    for _ in range(30):
        if mode == "DISABLED" and ended.any():
            plain.reset(options={"reset_mask": ended})
            _, info = full.reset(options={"reset_mask": ended})
        mask = array(info["action_mask"])
        assert np.array_equal(mask, array(full.action_masks()))
        observation, _, terminated, truncated, few = plain.step(mask.argmax(1))
        *_, info = full.step(mask.argmax(1))
        assert signature(info) == kept
        for name, value in few.items():
            assert same(value, info[name]), name
        for told in (few, info) if output == "numpy" else ():
            named = {key for key in told if key[0] != "_"}
            assert told.keys() - named == {f"_{key}" for key in named}
            assert {told[f"_{key}"].shape for key in named} == {(3,)}
        ended = array(terminated) | array(truncated)
        if "final_obs" in info and not ended.any():
            assert "final_obs" not in few
            assert same(observation, info["final_obs"])
        assert np.array_equal(array(info["_episode"]), ended)
        ends += int(ended.sum())
    assert ends > 5
    assert {"action_mask", "overflow", "episode", "_episode"} <= set(info)
    assert ("final_obs" in info) is (mode == "SAME_STEP")


@pytest.mark.parametrize("env_id", IDS)
def test_flat_observations_are_those_of_gymnasium(env_id):
    """`flatten` of one game's observation, as float32, for single and vector environments."""
    points = make_vec(env_id, 3, output="numpy", **SHORT)
    flat = make_vec(env_id, 3, observation="flat", **SHORT)
    space = points.single_observation_space
    shown = flat.single_observation_space
    whole = spaces.flatten_space(space)
    assert shown == spaces.Box(whole.low, whole.high, dtype=np.float32)
    one = gymnasium.make(env_id, observation="flat", **SHORT)
    assert one.observation_space == shown
    observation, _ = points.reset(seed=4)
    first, _ = flat.reset(seed=4)
    assert np.array_equal(first[0], one.reset(seed=4)[0])
    ends = 0
    for _ in range(20):
        rows = iterate(points.observation_space, observation)
        assert np.array_equal([spaces.flatten(space, row) for row in rows], first)
        actions = points.action_masks().argmax(1)
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
    env.reset(seed=1)
    for _ in range(80):
        env.step(env.action_space.sample())
    legal = [set(np.flatnonzero(row)) for row in array(env.action_masks())]
    drawn = np.stack([env.action_space.sample() for _ in range(200)])
    assert [set(column) for column in drawn.T] == legal
    one = gymnasium.make(env_id).action_space
    for space, plain in ((env.action_space, spaces.MultiDiscrete), (one, spaces.Discrete)):
        for copied in (copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
            assert type(copied) is plain
            assert copied == space
    only = (np.arange(one.n) == 2).astype(np.int8)
    assert {int(one.sample(only)) for _ in range(20)} == {2}
