"""Who knows the legal actions, and what callbacks find."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import VectorWrapper
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

import resgym  # noqa: F401  registers the environments
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn.collector import TensorCollector, lazy_array, lazy_infos
from sb3_ext.ddqn.legality import LegalActions
from tests.fakes import ToyEnv, ToyVectorEnv


def test_lazy_array_is_a_numpy_array_to_whoever_looks() -> None:
    lazy = lazy_array(torch.tensor([True, False, True]))
    assert np.sum(lazy).item() == 2
    assert len(lazy) == 3
    assert list(lazy) == [True, False, True]
    assert lazy[1:].tolist() == [False, True]
    np.testing.assert_array_equal(np.asarray(lazy, dtype=float), [1.0, 0.0, 1.0])
    assert [index for index, done in enumerate(lazy) if done] == [0, 2]


class ChooseFirst:
    exploration_rate: float | None = None

    def load_weights(self, weights: Any) -> None:
        raise AssertionError("nobody publishes")

    def __call__(self, observation: Any, legal: Any, generator: torch.Generator) -> torch.Tensor:
        return torch.zeros(16, dtype=torch.int64)


def test_lazy_infos_equal_the_infos_of_the_numpy_door() -> None:
    lazy_env, plain_env = (TensorVecEnv(ToyVectorEnv(16, dict_obs=True)) for _ in range(2))
    for env in (lazy_env, plain_env):
        env.seed(3)
    plain_env.reset()
    collector = TensorCollector(
        lazy_env, ChooseFirst(), LegalActions(*toy_spaces(), source="none"), torch.Generator()
    )
    ended = 0
    for _ in range(12):
        actions = np.zeros(16, int)
        lazy = lazy_infos(collector.step())
        _, _, dones, plain = plain_env.step(actions)
        assert len(lazy) == 16
        for row in range(16):
            assert bool(lazy[row]) == dones[row]
            if not dones[row]:
                continue
            ended += 1
            assert lazy[row]["TimeLimit.truncated"] == plain[row]["TimeLimit.truncated"]
            assert lazy[row]["episode"]["r"] == plain[row]["episode"]["r"]
            assert lazy[row]["episode"]["l"] == plain[row]["episode"]["l"]
            for key, value in plain[row]["terminal_observation"].items():
                np.testing.assert_array_equal(lazy[row]["terminal_observation"][key], value)
    assert ended > 20


def toy_spaces() -> tuple[spaces.Space, spaces.Space]:
    env = ToyVectorEnv(1)
    return env.single_observation_space, env.single_action_space


def test_legal_actions_prefer_the_observation_then_the_environment() -> None:
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


class OnlySome(VectorWrapper):
    """A wrapper with masks of its own, which hands everything else on."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def action_masks(self) -> torch.Tensor:
        return self.env.get_wrapper_attr("action_masks")()


class OnlySomeSingle(gymnasium.Wrapper):
    def action_masks(self) -> np.ndarray:
        return np.array([True, True, True, False])


def test_only_an_environment_whose_actions_are_all_legal_is_not_asked() -> None:
    """A wrapper or subclass may have masks of its own."""
    plain, action = toy_spaces()
    host = gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=2)
    for env, source in (
        (TensorVecEnv(AllLegal(4)), "none"),
        (TensorVecEnv(host), "none"),
        (TensorVecEnv(ToyVectorEnv(4)), "environment"),
        (TensorVecEnv(gymnasium.make_vec("resgym/Hironaka-v0", num_envs=2)), "environment"),
        (TensorVecEnv(OnlySome(host)), "environment"),
        (TensorVecEnv(OnlySome(AllLegal(2))), "environment"),
        (TensorVecEnv(VectorWrapper(host)), "environment"),
        (VecMonitor(TensorVecEnv(host)), "environment"),
        (
            DummyVecEnv([lambda: OnlySomeSingle(gymnasium.make("resgym/HironakaHost-v0"))]),
            "environment",
        ),
    ):
        assert LegalActions(plain, action, env).source == source, env
    asked = LegalActions(plain, action, TensorVecEnv(AllLegal(4)), "environment")
    assert asked.source == "environment"


class Unmasked(ToyEnv):
    action_masks = property()  # type: ignore[assignment]
