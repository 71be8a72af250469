"""The environments with Tianshou; see docs/clients.md."""

import gymnasium
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.utils.net.common import Net

envs = DummyVectorEnv([lambda: gymnasium.make("resgym:resgym/HironakaHost-v0")] * 4)
space, actions = envs.observation_space[0], envs.action_space[0]
net = Net(state_shape=space.shape, action_shape=actions.n, hidden_sizes=[64])
policy = DiscreteQLearningPolicy(model=net, action_space=actions, observation_space=space)
learner = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3))
collector = Collector(learner, envs, VectorReplayBuffer(1000, 4))
collector.reset()
print(collector.collect(n_step=200).n_collected_steps)
