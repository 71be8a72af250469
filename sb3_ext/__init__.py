"""Reinforcement learning for the resolution game on top of stable-baselines3.

Its packages are imported by name, and `DDQN`, `TensorVecEnv` and `exploit`, the attack on a frozen
player, when they are first asked for, so that ``import sb3_ext`` itself stays light.
"""

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from sb3_ext.adapter import TensorVecEnv
    from sb3_ext.attack.attack import exploit
    from sb3_ext.ddqn import DDQN
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["DDQN", "TensorVecEnv", "__version__", "exploit"]

__version__ = "0.1.0"
