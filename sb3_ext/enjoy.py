"""``python -m sb3_ext.enjoy``: rl_zoo3's enjoy with this project's algorithms and environments.

Example:
    python -m sb3_ext.enjoy --algo ddqn --env resgym/HironakaHost-v0 --no-render
"""

from __future__ import annotations

import sys

from sb3_ext.runs.command import start

if __name__ == "__main__":
    sys.exit(start("enjoy", "sb3_ext.training.zoo", "enjoy"))
