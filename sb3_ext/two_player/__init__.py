"""Two roles that learn against each other.

    from sb3_ext.two_player import HostAgentTrainer
    trainer = HostAgentTrainer("small")
    trainer.train(1000)
    print(trainer.evaluate_rho())

The configuration, the loop and the opponent pool are explained in `docs/two_player.md`; the command
line is `python -m sb3_ext.two_player`.
"""

from __future__ import annotations

try:
    import pydantic as _pydantic  # noqa: F401
    import tqdm as _tqdm  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"the two-player trainer needs {error.name}: pip install 'resgym[train]'"
    ) from error

from sb3_ext.algorithms import ALGORITHMS
from sb3_ext.callbacks import CALLBACKS
from sb3_ext.config.sections import ConfigError
from sb3_ext.networks.optimizers import OPTIMIZERS
from sb3_ext.schedules.schedules import SCHEDULES
from sb3_ext.two_player import hironaka as _hironaka  # noqa: F401
from sb3_ext.two_player.config import TrainerConfig
from sb3_ext.two_player.games import GAMES, Game, GameSettings
from sb3_ext.two_player.learner import LEARNERS, Learner
from sb3_ext.two_player.off_policy import BUFFERS, OffPolicyLearner
from sb3_ext.two_player.on_policy import OnPolicyLearner
from sb3_ext.two_player.pool import OpponentPool
from sb3_ext.two_player.run_directory import Evaluation, RunDirectory
from sb3_ext.two_player.trainer import HostAgentTrainer
from sb3_ext.two_player.update_schedule import (
    UPDATE_SCHEDULES,
    AlternatingPeriodic,
    Constant,
    ContiguousPeriodic,
    UpdateSchedule,
)

read_config = TrainerConfig.read
shipped_configs = TrainerConfig.shipped

__all__ = [
    "ALGORITHMS",
    "BUFFERS",
    "CALLBACKS",
    "GAMES",
    "LEARNERS",
    "OPTIMIZERS",
    "SCHEDULES",
    "UPDATE_SCHEDULES",
    "AlternatingPeriodic",
    "ConfigError",
    "Constant",
    "ContiguousPeriodic",
    "Evaluation",
    "Game",
    "GameSettings",
    "HostAgentTrainer",
    "Learner",
    "OffPolicyLearner",
    "OnPolicyLearner",
    "OpponentPool",
    "RunDirectory",
    "TrainerConfig",
    "UpdateSchedule",
    "read_config",
    "shipped_configs",
]
