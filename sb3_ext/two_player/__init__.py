"""Two roles that learn against each other: `HostAgentTrainer("small").train(1000)`.

`docs/two_player.md` explains it; the command line is `python -m sb3_ext.two_player`. Its names are
imported when one is first asked for, so that the command line answers signals before.
"""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from sb3_ext.two_player.config import ConfigError, TrainerConfig, read_config, shipped_configs
    from sb3_ext.two_player.kinds import BUFFERS, LEARNERS
    from sb3_ext.two_player.learner import ALGORITHMS, CALLBACKS, OPTIMIZERS, SCHEDULES
    from sb3_ext.two_player.trainer import Evaluation, HostAgentTrainer
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ALGORITHMS",
    "BUFFERS",
    "CALLBACKS",
    "LEARNERS",
    "OPTIMIZERS",
    "SCHEDULES",
    "ConfigError",
    "Evaluation",
    "HostAgentTrainer",
    "TrainerConfig",
    "read_config",
    "shipped_configs",
]
