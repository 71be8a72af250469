"""Callbacks for SB3's `learn`, one file a purpose.

All of them work with our algorithms and with those of SB3, say how often with an `Every`, and go on
after a resume as if nothing had happened (`sb3_ext.checkpoints.resume`). A configuration
gives them by name, with plain data as arguments (`docs/two_player.md`).
"""

from __future__ import annotations

from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.callbacks.action_counts import ActionCounts
from sb3_ext.callbacks.checkpoints import Checkpoints, Signals
from sb3_ext.callbacks.curriculum import Curriculum
from sb3_ext.callbacks.layer_statistics import LayerStatistics
from sb3_ext.callbacks.rho_evaluation import RhoEvaluation
from sb3_ext.callbacks.sample_games import SampleGames
from sb3_ext.callbacks.stop_conditions import StopConditions
from sb3_ext.callbacks.system import SystemStatistics
from sb3_ext.callbacks.timers import Timers
from sb3_ext.config.registry import Registry
from sb3_ext.runs.stopping import Bound, Converged

__all__ = [
    "CALLBACKS",
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
    "SystemStatistics",
    "Timers",
]

CALLBACKS: Registry[type[BaseCallback]] = Registry("callback", BaseCallback)
"""Callbacks whose arguments are plain data; your own by ``CALLBACKS.register("mine", Mine)``."""

CALLBACKS.register("action_counts", ActionCounts)
CALLBACKS.register("curriculum", Curriculum)
CALLBACKS.register("layer_statistics", LayerStatistics)
CALLBACKS.register("rho_evaluation", RhoEvaluation)
CALLBACKS.register("sample_games", SampleGames)
CALLBACKS.register("stop_conditions", StopConditions)
CALLBACKS.register("system_statistics", SystemStatistics)
CALLBACKS.register("timers", Timers)
