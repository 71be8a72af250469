"""Reinforcement learning for the resolution game on top of stable-baselines3.

Its packages are imported by name, and `exploit`, the attack on a frozen player, when it is first
asked for, so that ``import sb3_ext`` itself stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from resgym.lazy import lazy_names

if TYPE_CHECKING:
    from sb3_ext.attack.attack import exploit
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["__version__", "exploit"]

__version__ = "0.1.0"
