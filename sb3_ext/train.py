"""``python -m sb3_ext.train``: rl_zoo3's train with this project's algorithms and environments.

Example:
    python -m sb3_ext.train --algo ddqn --env resgym/HironakaHost-v0 --progress
"""

from __future__ import annotations

import sys

from sb3_ext.runs.command import start

if __name__ == "__main__":
    sys.exit(start("train", "sb3_ext.training.train"))
