"""Double deep Q-learning with legal-action masks, for many parallel games."""

from __future__ import annotations

from sb3_ext.ddqn.ddqn import DDQN, LossTerms, UpdateExtension
from sb3_ext.ddqn.policies import AgentPolicy, HostPolicy, MlpPolicy, MultiInputPolicy, QPolicy

__all__ = [
    "DDQN",
    "AgentPolicy",
    "HostPolicy",
    "LossTerms",
    "MlpPolicy",
    "MultiInputPolicy",
    "QPolicy",
    "UpdateExtension",
]
