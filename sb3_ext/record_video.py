"""``python -m sb3_ext.record_video``: films a trained model, with the flags of rl_zoo3.

Example:
    python -m sb3_ext.record_video --algo ddqn --env resgym/HironakaHost-v0 -f logs -n 40
"""

from __future__ import annotations

import sys

from sb3_ext.runs.command import start

if __name__ == "__main__":
    sys.exit(start("record_video", "sb3_ext.training.zoo_scripts", "record_video"))
