"""Who knows the legal actions, and what callbacks find."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import VectorWrapper
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

import resgym  # noqa: F401  registers the environments
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn.legality import LegalActions, mask_key
from tests.fakes import ToyEnv, ToyVectorEnv
from tests.sb3_ext.ddqn.helpers import make_model


def toy_spaces():
    env = ToyVectorEnv(1)
    return env.single_observation_space, env.single_action_space


def test_legal_actions_prefer_the_observation_then_the_environment():
    plain, action = toy_spaces()
    masked = spaces.Dict(coords=spaces.MultiBinary(4), points=plain)
    env = TensorVecEnv(ToyVectorEnv(4))
    assert LegalActions(masked, action, env).source == "observation"
    assert LegalActions(plain, action, None).source == "none"
    assert LegalActions(masked, action, env, "environment").key is None
    off = LegalActions(masked, action, env, "none")
    assert off.of_observation({"coords": torch.ones(1, 4)}) is None
    seen = LegalActions(masked, action).of_observation({"coords": torch.tensor([[0, 1, 0, 1]])})
    assert seen is not None
    assert seen.tolist() == [[False, True, False, True]]
    with pytest.raises(ValueError, match=r"no action_masks\(\)"):
        LegalActions(plain, action, DummyVecEnv([lambda: Unmasked()]), "environment")


BINARY = (
    spaces.MultiBinary(4),
    spaces.Box(0, 1, (4,), np.int8),
    spaces.Box(0.0, 1.0, (4,), np.float32),
    spaces.MultiDiscrete([2] * 4),
)
OTHER = (spaces.MultiBinary(3), spaces.Box(-1, 1, (4,)), spaces.MultiDiscrete([2, 2, 2, 3]))


def test_a_mask_is_found_by_its_name_and_of_any_binary_space():
    action = spaces.Discrete(4)
    for name in ("action_mask", "action_masks"):
        for space in BINARY:
            assert mask_key(spaces.Dict({"seen": BINARY[0], name: space}), action) == name
        for space in OTHER:
            with pytest.raises(ValueError, match=rf"{name}: got .*expected 0 or 1 for each of 4"):
                mask_key(spaces.Dict({name: space}), action)
    # Others are no masks, whatever their size: the set on the turn of the host is none, either.
    for entries in (("seen", "points"), ("coords", "points", "to_play"), ("coords",)):
        given = spaces.Dict(dict.fromkeys(entries, BINARY[0]))
        assert mask_key(given, action) is None
    both = gymnasium.make_vec("resgym/Hironaka-v0", num_envs=2, dimension=2)
    assert make_model(TensorVecEnv(both)).legal_actions.source == "environment"
    off = LegalActions(spaces.Dict(action_mask=OTHER[0]), action, None, "none")
    assert off.key is None
    with pytest.raises(ValueError, match="expected one that starts at 0"):
        LegalActions(BINARY[0], spaces.Discrete(4, start=1))


def test_every_action_counts_as_legal_at_a_final_observation():
    """What the environment says after the step is about the next episode."""
    env = TensorVecEnv(ToyVectorEnv(4, horizon=2))
    legal = LegalActions(*toy_spaces(), env)
    env.reset()
    ended = 0
    for _ in range(8):
        dones = torch.from_numpy(env.step(np.zeros(4, dtype=int))[2])
        now, stored = legal.after(env, torch.device("cpu"), dones)
        assert torch.equal(now, env.action_masks_tensor())
        assert stored[dones].all()
        assert torch.equal(stored[~dones], now[~dones])
        ended += int(dones.sum())
    assert ended > 8


class AllLegal(ToyVectorEnv):
    all_actions_legal = True


def test_only_an_environment_whose_actions_are_all_legal_is_not_asked():
    """A wrapper or subclass may have masks of its own."""
    plain, action = toy_spaces()
    host = gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=2)
    for env, source in (
        (TensorVecEnv(AllLegal(4)), "none"),
        (TensorVecEnv(host), "none"),
        (TensorVecEnv(ToyVectorEnv(4)), "environment"),
        (TensorVecEnv(gymnasium.make_vec("resgym/Hironaka-v0", num_envs=2)), "environment"),
        (TensorVecEnv(VectorWrapper(host)), "environment"),
        (VecMonitor(TensorVecEnv(host)), "environment"),
    ):
        assert LegalActions(plain, action, env).source == source, env
    asked = LegalActions(plain, action, TensorVecEnv(AllLegal(4)), "environment")
    assert asked.source == "environment"


class Unmasked(ToyEnv):
    action_masks = property()
