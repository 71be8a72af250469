"""What every algorithm shares: schedules, networks, registries, buffers, checkpoints.

Nothing is imported here; take what is needed from the module that has it.
"""

from __future__ import annotations

__all__: list[str] = []
