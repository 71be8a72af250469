"""A host that learns by play to win against every agent: minimax targets by the exact model."""

from sb3_ext.minimax.algorithm import MinimaxDQN, ValueAgent, ValueHost, minimax_targets
from sb3_ext.minimax.positions import WorstCasePositions
from sb3_ext.minimax.sizes import OtherSize

__all__ = [
    "MinimaxDQN",
    "OtherSize",
    "ValueAgent",
    "ValueHost",
    "WorstCasePositions",
    "minimax_targets",
]
