"""Names that a two-player configuration can use; register more to use your own.

    from sb3_ext.two_player import ALGORITHMS
    ALGORITHMS.register("mine", MyAlgorithm)        # then `algorithm: mine` in the configuration

Optimisers, schedules and update schedules have registries of the same kind, `OPTIMIZERS`,
`SCHEDULES` and `UPDATE_SCHEDULES`.
"""

from __future__ import annotations

from sb3_contrib import QRDQN
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from sb3_ext.config.registry import Registry
from sb3_ext.ddqn import DDQN
from sb3_ext.replay.buffers import TensorReplayBuffer

__all__ = ["ALGORITHMS", "BUFFERS"]

ALGORITHMS: Registry[type[OffPolicyAlgorithm]] = Registry("algorithm")
"""Off-policy algorithms with discrete actions: constructor arguments as SB3's `DQN`."""

BUFFERS: Registry[type[ReplayBuffer]] = Registry("replay buffer")
"""Replay buffers: constructor arguments as SB3's `ReplayBuffer`."""

ALGORITHMS.register("ddqn", DDQN)
# Stock algorithms do not know which actions are legal: take `invalid_action: noop` for the agent.
ALGORITHMS.register("dqn", DQN)
ALGORITHMS.register("qrdqn", QRDQN)

BUFFERS.register("tensor", TensorReplayBuffer)
