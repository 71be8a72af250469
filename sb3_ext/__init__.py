"""Reinforcement learning for the resolution game on top of stable-baselines3.

The packages below are imported by name, so that ``import sb3_ext`` itself stays light:
``sb3_ext.adapter`` (tensor environments as SB3 environments), ``sb3_ext.common`` (schedules,
networks, buffers, checkpoints), ``sb3_ext.ddqn``, ``sb3_ext.callbacks``, ``sb3_ext.two_player``
and ``sb3_ext.training``.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
