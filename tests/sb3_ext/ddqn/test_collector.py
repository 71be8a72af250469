"""Collecting for `learn` from outside: weights go out with a version, parallel steps come in."""

import copy
from functools import partial

import gymnasium
import pytest
import torch
from gymnasium.vector import VectorWrapper
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper

import resgym  # noqa: F401  registers the environments
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.ddqn import DDQN
from sb3_ext.ddqn.collector import Explorer, TensorCollector
from sb3_ext.ddqn.legality import LegalActions
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.helpers import equal, make_model, weights


def collector_of(model, env, generator):
    """A collector that shares nothing with the model but the mask's source."""
    network = copy.deepcopy(model.q_net)
    network.set_training_mode(False)
    explorer = Explorer(network, int(model.action_space.n))
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
    assert equal(weights(inside), weights(outside))
    assert collector.version == outside.num_updates - 1  # of the weights that played last


class OneMemory(VecEnvWrapper):
    """Writes the results of every step into the same arrays."""

    memory = None

    def reset(self):
        return self.venv.reset()

    def step_wait(self):
        *results, infos = self.venv.step_wait()
        self.memory = self.memory or results
        for kept, new in zip(self.memory, results, strict=True):
            kept[...] = new
        return (*self.memory, infos)


class OfEndedRows(VectorWrapper):
    """`final_obs` of ended rows alone, as Gymnasium's own wrappers leave it."""

    def step(self, actions):
        *results, info = self.env.step(actions)
        if "final_obs" in info:
            ended = info["_final_obs"]
            info["final_obs"] = torch.where(ended[:, None, None], info["final_obs"], torch.nan)
        return (*results, info)


def games():
    return gymnasium.make_vec("resgym/HironakaHost-v0", num_envs=6)


CARTS = [partial(gymnasium.make, "CartPole-v1")] * 2
HABITS = {
    "memory is reused": (lambda: DummyVecEnv(CARTS), lambda: OneMemory(DummyVecEnv(CARTS))),
    "final_obs of ended rows alone": (games, lambda: OfEndedRows(games())),
}


@pytest.mark.parametrize("habit", HABITS)
def test_transitions_are_the_same_whatever_the_environments_habit(habit):
    played = []
    for make_env in HABITS[habit]:
        env = DDQN.games_of(make_env())
        env.seed(1)
        model = make_model(env, seed=0)
        played.append(collector_of(model, env, torch.Generator().manual_seed(0)).collect(40))
    assert any(each.terminated.any() for each in played[0])
    for one, other in zip(*played, strict=True):
        for name in ("observations", "rewards", "terminated", "next_observations"):
            assert torch.equal(getattr(one, name), getattr(other, name))
