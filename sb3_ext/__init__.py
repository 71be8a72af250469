"""Reinforcement learning for the resolution game on top of stable-baselines3.

The packages below are imported by name, so that ``import sb3_ext`` itself stays light:
``sb3_ext.adapter`` (tensor environments as SB3 environments), ``sb3_ext.common`` (schedules,
networks, buffers, checkpoints), ``sb3_ext.ddqn``, ``sb3_ext.callbacks``, ``sb3_ext.two_player``,
``sb3_ext.attack`` and ``sb3_ext.training``. ``sb3_ext.exploit`` is that of ``sb3_ext.attack``,
imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sb3_ext.attack import exploit

__all__ = ["__version__", "exploit"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "exploit":
        from sb3_ext.attack import exploit

        return exploit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
