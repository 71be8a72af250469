"""Reinforcement learning for the resolution game on top of stable-baselines3.

The packages below are imported by name, so that ``import sb3_ext`` itself stays light:
``adapter`` (tensor environments as SB3 environments), ``schedules``, ``networks``, ``points``,
``replay``, ``checkpoints``, ``off_policy``, ``ddqn``, ``callbacks``, ``two_player``, ``training``
and ``studies``.
``sb3_ext.exploit``, the attack on a frozen player, is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sb3_ext.studies.attack import exploit

__all__ = ["__version__", "exploit"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "exploit":
        from sb3_ext.studies.attack import exploit

        return exploit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
