"""Callbacks for SB3's `learn`.

They work with our algorithms and with those of SB3. An `Every` sets their period, and a resumed run
continues exactly (`sb3_ext.checkpoints.resume`). Configurations name them, with plain data as
arguments (`docs/two_player.md`).
"""

from __future__ import annotations

from stable_baselines3.common.callbacks import BaseCallback

from sb3_ext.callbacks.base import Checkpoints, Signals
from sb3_ext.callbacks.evaluation import RhoEvaluation, SampleGames, evaluate_policy
from sb3_ext.callbacks.stopping import Curriculum, GrowingStarts, StopConditions
from sb3_ext.callbacks.watching import ActionCounts, LayerStatistics, SystemStatistics, Timers
from sb3_ext.config.checks import Registry
from sb3_ext.runs.stopping import Bound, Converged

__all__ = [
    "CALLBACKS",
    "ActionCounts",
    "Bound",
    "Checkpoints",
    "Converged",
    "Curriculum",
    "GrowingStarts",
    "LayerStatistics",
    "RhoEvaluation",
    "SampleGames",
    "Signals",
    "StopConditions",
    "SystemStatistics",
    "Timers",
    "evaluate_policy",
]

CALLBACKS: Registry[type[BaseCallback]] = Registry("callback", BaseCallback)
"""Callbacks whose arguments are plain data; your own by ``CALLBACKS.register("mine", Mine)``."""

CALLBACKS.update(
    action_counts=ActionCounts,
    curriculum=Curriculum,
    growing_starts=GrowingStarts,
    layer_statistics=LayerStatistics,
    rho_evaluation=RhoEvaluation,
    sample_games=SampleGames,
    stop_conditions=StopConditions,
    system_statistics=SystemStatistics,
    timers=Timers,
)
CALLBACKS.later(
    other_size="sb3_ext.minimax.sizes:OtherSize",
    worst_case_positions="sb3_ext.minimax.positions:WorstCasePositions",
)
