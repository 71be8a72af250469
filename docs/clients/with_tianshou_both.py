"""Both seats with Tianshou, which wants one space for all; see docs/clients.md."""

import numpy as np
from pettingzoo.utils import BaseWrapper
from tianshou.algorithm.multiagent.marl import MultiAgentOffPolicyAlgorithm
from tianshou.algorithm.random import MARLRandomDiscreteMaskedOffPolicyAlgorithm
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, PettingZooEnv

from resgym import hironaka_v0


class SameSpaces(BaseWrapper):
    """Each seat has the host's spaces; what is too much for the agent is never legal."""

    def action_space(self, agent):
        return self.env.action_space("host_0")

    def observation_space(self, agent):
        return self.env.observation_space("host_0")

    def observe(self, agent):
        seen = self.env.observe(agent)
        missing = self.action_space(agent).n - len(seen["action_mask"])
        return {**seen, "action_mask": np.pad(seen["action_mask"], (0, missing))}

    @property
    def infos(self):
        return {seat: {} for seat in self.env.agents}  # the mask is in the observation


def make():
    return PettingZooEnv(SameSpaces(hironaka_v0.env()))


env = make()
seats = [MARLRandomDiscreteMaskedOffPolicyAlgorithm(action_space=env.action_space) for _ in "ab"]
learner = MultiAgentOffPolicyAlgorithm(algorithms=seats, env=env)
collector = Collector(learner, DummyVectorEnv([make] * 3), VectorReplayBuffer(1000, 3))
collector.reset()
print(collector.collect(n_episode=20).returns)  # of the host and the agent
