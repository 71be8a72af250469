"""Collecting for `learn` from outside: weights go out with a version, parallel steps come in."""

import copy

import pytest

from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn.collector import Explorer, TensorCollector
from sb3_ext.ddqn.legality import LegalActions
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.ddqn.helpers import make_model, same, weights


def collector_of(model, env, generator):
    """A collector that shares nothing with the model but the mask's source."""
    network = copy.deepcopy(model.q_net)
    network.set_training_mode(False)
    explorer = Explorer(network, 4)
    spaces = env.observation_space, env.action_space
    legal_actions = LegalActions(*spaces, env, model.mask_source)
    return TensorCollector(env, explorer, legal_actions, generator)


@pytest.mark.parametrize("dict_obs", [True, False])
def test_collecting_outside_is_collecting_inside(dict_obs):
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
