"""The names that `sb3_ext.two_player` offers, and the registries filled."""

from sb3_ext.callbacks import CALLBACKS as CALLBACKS
from sb3_ext.config.sections import ConfigError as ConfigError
from sb3_ext.ddqn.algorithms import ALGORITHMS as ALGORITHMS
from sb3_ext.ddqn.policies import OPTIMIZERS as OPTIMIZERS
from sb3_ext.schedules.schedules import SCHEDULES as SCHEDULES
from sb3_ext.two_player.config import TrainerConfig as TrainerConfig
from sb3_ext.two_player.config import read_config as read_config
from sb3_ext.two_player.config import shipped_configs as shipped_configs
from sb3_ext.two_player.kinds import BUFFERS as BUFFERS
from sb3_ext.two_player.learner import LEARNERS as LEARNERS
from sb3_ext.two_player.trainer import Evaluation as Evaluation
from sb3_ext.two_player.trainer import HostAgentTrainer as HostAgentTrainer
