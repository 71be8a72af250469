"""Who knows the legal actions, and what callbacks find."""

import gymnasium
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import VectorWrapper
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

import resgym  # noqa: F401  registers the environments
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn.legality import LegalActions
from tests.fakes import ToyEnv, ToyVectorEnv


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
