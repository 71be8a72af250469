"""Callbacks for SB3's `learn`, one file a purpose.

All of them work with our algorithms and with those of SB3, say how often with an `Every`, and go on
after a resume as if nothing had happened (`sb3_ext.checkpoints.resume`).
"""

from __future__ import annotations

from sb3_ext.callbacks.action_counts import ActionCounts
from sb3_ext.callbacks.checkpoints import Checkpoints
from sb3_ext.callbacks.conditions import Bound, Converged
from sb3_ext.callbacks.curriculum import Curriculum
from sb3_ext.callbacks.layer_statistics import LayerStatistics
from sb3_ext.callbacks.rho_evaluation import RhoEvaluation
from sb3_ext.callbacks.sample_games import SampleGames
from sb3_ext.callbacks.signals import Signals
from sb3_ext.callbacks.stop_conditions import StopConditions
from sb3_ext.callbacks.timers import Timers

__all__ = [
    "ActionCounts",
    "Bound",
    "Checkpoints",
    "Converged",
    "Curriculum",
    "LayerStatistics",
    "RhoEvaluation",
    "SampleGames",
    "Signals",
    "StopConditions",
    "Timers",
]
