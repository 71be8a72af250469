"""Double deep Q-learning with legal-action masks, for many parallel games."""

from sb3_ext.ddqn.ddqn import DDQN, LossTerms
from sb3_ext.ddqn.policies import QPolicy

__all__ = ["DDQN", "LossTerms", "QPolicy"]
