"""Collecting for `learn` from outside: weights go out with a version, parallel steps come in."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np
import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.collector import Explorer, ParallelStep, TensorCollector
from sb3_ext.ddqn.legality import LegalActions
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.ddqn.helpers import make_model, same, weights


def collector_of(model: DDQN, env: TensorVecEnv, generator: torch.Generator) -> TensorCollector:
    """A collector that shares nothing with the model but the mask's source."""
    network = copy.deepcopy(model.q_net)
    network.set_training_mode(False)
    explorer = Explorer(network, 4)
    spaces = env.observation_space, env.action_space
    legal_actions = LegalActions(*spaces, env, model.mask_source)
    return TensorCollector(env, explorer, legal_actions, generator)


@pytest.mark.parametrize("dict_obs", [True, False])
def test_collecting_outside_is_collecting_inside(dict_obs: bool) -> None:
    """The same games, random numbers and weights: the same run bit for bit."""
    inside, outside = (make_model(TensorVecEnv(ToyVectorEnv(8, dict_obs=dict_obs))) for _ in "ab")
    inside.learn(800)
    env = TensorVecEnv(ToyVectorEnv(8, dict_obs=dict_obs))
    env.seed(outside.seed)
    collector = collector_of(outside, env, outside.random_streams["explore"])
    outside.learn(800, collector=collector)
    assert outside.num_updates == inside.num_updates > 50
    assert outside.num_timesteps == inside.num_timesteps
    assert same(weights(inside), weights(outside))
    assert collector.version == outside.num_updates - 1  # of the weights that played last


class Sending:
    """A collector whose steps travel as arrays."""

    def __init__(self, collector: TensorCollector) -> None:
        self.collector = collector
        self.versions: list[int] = []
        self.rates: list[float | None] = []
        self.steps: list[ParallelStep] = []

    def publish(self, version: int, weights: Mapping[str, Tensor], rate: float | None) -> None:
        self.versions.append(version)
        self.rates.append(rate)
        self.collector.publish(version, weights, rate)

    def collect(self, num_steps: int) -> list[ParallelStep]:
        steps = [step.as_arrays() for step in self.collector.collect(num_steps)]
        self.steps += steps
        return steps


class Infos(BaseCallback):
    def __init__(self) -> None:
        super().__init__()
        self.episodes, self.calls = 0, 0

    def _on_step(self) -> bool:
        self.calls += 1
        self.episodes += sum("episode" in info for info in self.locals["infos"])
        return True


@pytest.mark.parametrize("legal", ["none", "environment"])
def test_steps_from_elsewhere_are_stored_and_counted(legal: str) -> None:
    def games() -> TensorVecEnv:
        return TensorVecEnv(ToyVectorEnv(8, dict_obs=legal == "none"))

    model = make_model(
        games(),
        mask_source=legal,
        train_freq=5,
        learning_starts=64,
        n_steps=2,
        target_update_unit="transitions",
        target_update_interval=100,
    )
    before, seen = weights(model), Infos()
    sending = Sending(collector_of(model, games(), torch.Generator().manual_seed(0)))
    model.learn(800, seen, collector=sending)
    assert model.num_timesteps == 800
    assert model.num_target_updates == 8
    assert seen.calls == 100
    assert seen.episodes == sum(
        int(step.episode["ended"].sum()) for step in sending.steps if step.episode is not None
    )
    assert seen.episodes > 20
    assert isinstance(sending.steps[0].rewards, np.ndarray)
    # Versions are numbers of updates; at first there are none, and actions are random.
    assert sending.versions == sorted(sending.versions)
    assert (sending.versions[0], sending.rates[0]) == (0, None)
    assert sending.versions[-1] == model.num_updates - 1
    assert not same(before, weights(model))
    stored = model.replay_buffer.state_dict()["fields"]["rewards"]
    rewards = np.stack([step.rewards for step in sending.steps])
    np.testing.assert_array_equal(stored[: len(rewards)], rewards[-len(stored) :])
