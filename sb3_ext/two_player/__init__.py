"""Two roles that learn against each other: `HostAgentTrainer("small").train(1000)`.

`docs/two_player.md` explains it; the command line is `python -m sb3_ext.two_player`. Its names are
imported when one is first asked for, so that the command line answers signals before.
"""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from sb3_ext.two_player.config import *  # noqa: F403
    from sb3_ext.two_player.kinds import *  # noqa: F403
    from sb3_ext.two_player.learner import *  # noqa: F403
    from sb3_ext.two_player.trainer import *  # noqa: F403
else:
    _HOMES = {
        "config": "ConfigError TrainerConfig read_config shipped_configs",
        "kinds": "BUFFERS LEARNERS",
        "learner": "ALGORITHMS CALLBACKS OPTIMIZERS SCHEDULES",
        "trainer": "Evaluation HostAgentTrainer",
    }
    __getattr__, _ = lazy_names(__name__, _HOMES)
